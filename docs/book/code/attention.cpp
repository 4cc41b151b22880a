// Attention of three tokens with two features each: by plain loops, by `Lanes`, by CUDA. Then what √d is for.
#include "both_devices.h"
#include "tensor/random.h"

using book::Row;

namespace {

constexpr std::size_t kTokens = 3, kWidth = 2;
using Matrix = std::vector<Row>;

Matrix zeros(std::size_t rows, std::size_t columns) { return Matrix(rows, Row(columns, 0.0)); }

/// P = softmax(q kᵀ / √d), row by row
Matrix probabilities(const Matrix& q, const Matrix& k) {
  Matrix p = zeros(q.size(), k.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    double total = 0;
    for (std::size_t j = 0; j < k.size(); ++j) {
      double score = 0;
      for (std::size_t c = 0; c < kWidth; ++c) score += q[i][c] * k[j][c];
      p[i][j] = std::exp(score / std::sqrt(double{kWidth}));
      total += p[i][j];
    }
    for (double& v : p[i]) v /= total;
  }
  return p;
}

/// y = P v
Matrix mix(const Matrix& p, const Matrix& v) {
  Matrix y = zeros(p.size(), kWidth);
  for (std::size_t i = 0; i < p.size(); ++i)
    for (std::size_t j = 0; j < v.size(); ++j)
      for (std::size_t c = 0; c < kWidth; ++c) y[i][c] += p[i][j] * v[j][c];
  return y;
}

struct Gradients {
  Matrix q = zeros(kTokens, kWidth), k = q, v = q;
};

Gradients backward_by_hand(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& p, const Matrix& dy) {
  Gradients d;
  for (std::size_t i = 0; i < kTokens; ++i) {
    Row dp(kTokens, 0.0);
    double dot = 0;
    for (std::size_t j = 0; j < kTokens; ++j) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        d.v[j][c] += p[i][j] * dy[i][c];  // dv = Pᵀ dy
        dp[j] += dy[i][c] * v[j][c];      // dP = dy vᵀ
      }
      dot += p[i][j] * dp[j];
    }
    for (std::size_t j = 0; j < kTokens; ++j) {
      const double ds = p[i][j] * (dp[j] - dot) / std::sqrt(double{kWidth});  // softmax's backward, and the 1/√d
      for (std::size_t c = 0; c < kWidth; ++c) {
        d.q[i][c] += ds * k[j][c];  // dq = dS k
        d.k[j][c] += ds * q[i][c];  // dk = dSᵀ q
      }
    }
  }
  return d;
}

/// Query, key and value of each token side by side, as the op takes them.
Row side_by_side(const Matrix& q, const Matrix& k, const Matrix& v) {
  Row all;
  for (std::size_t i = 0; i < kTokens; ++i)
    for (const Matrix* const part : {&q, &k, &v}) all.insert(all.end(), (*part)[i].begin(), (*part)[i].end());
  return all;
}

Row flat(const Matrix& m) {
  Row all;
  for (const Row& row : m) all.insert(all.end(), row.begin(), row.end());
  return all;
}

/// Two tokens with the scores 2 and 1, and a place that is only padding.
void show_masks() {
  const double a = std::exp(2), b = std::exp(1), none = std::exp(-INFINITY), zero = std::exp(0);
  std::printf("score of the padding 0:     %.3f %.3f %.3f\n", a / (a + b + zero), b / (a + b + zero),
              zero / (a + b + zero));
  std::printf("made 0 after the softmax:   %.3f %.3f 0.000\n", a / (a + b + zero), b / (a + b + zero));
  std::printf("score of the padding -inf:  %.3f %.3f %.3f\n", a / (a + b + none), b / (a + b + none),
              none / (a + b + none));
  std::printf("without the padding:        %.3f %.3f\n", a / (a + b), b / (a + b));
}

/// The greatest of 8 probabilities, on average over many random queries and keys with d features.
void show_root_of_d(int d) {
  bertrand::Random random(1);
  double divided = 0, plain = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Row scores(8, 0.0);
    for (double& s : scores)
      for (int c = 0; c < d; ++c) s += random.normal() * random.normal();
    for (const bool divide : {false, true}) {
      double total = 0, most = 0;
      for (const double s : scores) {
        const double e = std::exp(divide ? s / std::sqrt(d) : s);
        total += e;
        most = std::max(most, e);
      }
      (divide ? divided : plain) += most / total / 400;
    }
  }
  std::printf("d = %3d: greatest of 8 probabilities %.2f, with 1/sqrt(d) %.2f\n", d, plain, divided);
}

}  // namespace

int main() {
  using namespace bertrand;
  const Matrix q{{1, 0}, {0, 1}, {1, 1}}, k{{1, 0}, {0, 1}, {1, 1}}, v{{1, 2}, {3, 4}, {5, 6}},
      dy{{1, 0}, {0, 1}, {0, 0}};
  const Matrix p = probabilities(q, k);
  for (const Row& row : p) book::print("P", row);
  const Gradients d = backward_by_hand(q, k, v, p, dy);
  book::compare(
      {"attention", "d(q, k, v), token by token"}, {flat(mix(p, v)), side_by_side(d.q, d.k, d.v)},
      {{side_by_side(q, k, v), {kTokens, 3 * kWidth}}}, flat(dy), [](const std::vector<Variable>& in) {
        const std::vector<std::int32_t> offsets{0, kTokens};
        return attention(
            in[0], {.offsets = ops::from_host(offsets, {2}, in[0].value().backend()), .heads = 1, .longest = kTokens});
      });
  for (const int width : {4, 64, 256}) show_root_of_d(width);
  show_masks();
}
