// How far may one trust a slope that is measured by two evaluations?
#include <cmath>
#include <cstdio>

namespace {

double f(double x) { return x * x * x - 2 * x; }
double slope(double x) { return 3 * x * x - 2; }

}  // namespace

int main() {
  const double x = 1.5;
  std::printf("h        one side   both sides\n");
  for (int digits = 1; digits <= 13; digits += 2) {
    const double h = std::pow(10, -digits);
    const double one_side = (f(x + h) - f(x)) / h, both_sides = (f(x + h) - f(x - h)) / (2 * h);
    std::printf("1e-%02d    %.0e      %.0e\n", digits, std::abs(one_side - slope(x)), std::abs(both_sides - slope(x)));
  }
}
