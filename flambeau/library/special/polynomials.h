// Orthogonal polynomials of x of degree n, its fraction cut off; 0 where n is negative.
#pragma once

namespace fl::library {

double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);   ///< The physicists'.
double hermite_he(double x, double n);  ///< The probabilists'.
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace fl::library
