#include "tests/autograd/reference_backend.cpp"
