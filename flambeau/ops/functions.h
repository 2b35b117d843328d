// Every operator as a C++ function.
#pragma once
#include "flambeau/ops/aten/activation.h"
#include "flambeau/ops/aten/arithmetic.h"
#include "flambeau/ops/aten/view.h"
#include "flambeau/ops/prims/binary.h"
#include "flambeau/ops/prims/factory.h"
#include "flambeau/ops/prims/random.h"
#include "flambeau/ops/prims/scatter_view.h"
#include "flambeau/ops/prims/shape.h"
#include "flambeau/ops/prims/ternary.h"
#include "flambeau/ops/prims/unary.h"
#include "flambeau/ops/prims/view.h"
