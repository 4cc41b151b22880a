// How a fast matrix product works, in the large: which blocks of the operands are packed when, and who computes what.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/gemm_tile.h"
#include "tensor/cpu/math.h"

namespace bertrand::cpu {
namespace {

// Up to so many rows fit the second-level cache when packed.
constexpr Dim kCachedRows = kTileRows * (192 / kTileRows);
// A super-block of this many rows or columns of C is packed at once: enough to be shared by all threads, bounded in memory.
constexpr Dim kSuperBlock = 4096;

Dim round_up(Dim n, Dim multiple) { return (n + multiple - 1) / multiple * multiple; }
Dim ceiling(Dim n, Dim d) { return (n + d - 1) / d; }

/// The block of C that is one piece of work: rows that fit the second-level cache when packed, and enough pieces for all.
struct Blocks {
  Dim rows, columns;

  template <class T>
  static Blocks choose(Dim rows, Dim columns, int threads) {
    Blocks blocks{kCachedRows, round_up(512, kTileColumns<T>)};
    const auto pieces = [&] { return ceiling(rows, blocks.rows) * ceiling(columns, blocks.columns); };
    const auto halve = [](Dim& n, Dim multiple) { n = round_up(n / 2, multiple); };
    const Dim enough = threads == 1 ? 1 : 6 * threads;
    const Dim least_columns = (rows <= kCachedRows ? 2 : 8) * kTileColumns<T>;
    while (pieces() < enough && blocks.columns > least_columns) halve(blocks.columns, kTileColumns<T>);
    while (pieces() < enough && blocks.rows > 4 * kTileRows && rows > kCachedRows) halve(blocks.rows, kTileRows);
    return blocks;
  }
};

/// activation(pre) over a block of C, while it is still in the cache.
template <class T>
void activate(Unary activation, const T* pre, T* y, Dim stride, Dim rows, Dim columns) {
  for (Dim i = 0; i < rows; ++i)
    for_lanes<T>(columns, [&](Dim j, Dim n) {
      const auto x = Lanes<T>::load(pre + i * stride + j, n);
      const auto value = activation == Unary::gelu_erf    ? gelu_erf(x)
                         : activation == Unary::gelu_tanh ? gelu_tanh(x)
                         : activation == Unary::tanh      ? tanh(x)
                                                          : max(x, Lanes<T>(T(0)));
      value.store(y + i * stride + j, n);
    });
}

}  // namespace

template <class T>
void CpuBackend::gemm_typed(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& out, const Gemm& options) {
  const Dim rows = out.shape()[0], columns = out.shape()[1], depth = a_tensor.shape()[options.transpose_a ? 0 : 1];
  View<T> a{elements<T>(a_tensor), a_tensor.shape()[1], 1}, b{elements<T>(b_tensor), b_tensor.shape()[1], 1};
  if (options.transpose_a) a = a.transposed();
  if (options.transpose_b) b = b.transposed();

  const bool activated = options.activation != Unary::identity;
  T* const y = writable<T>(out);
  T* const c = activated && options.pre_activation ? writable<T>(options.pre_activation) : y;
  const T* const bias = options.bias ? elements<T>(options.bias) : nullptr;
  if (depth == 0) {
    if (!options.accumulate) fill(out, 0);
    return;
  }

  const Dim super_rows = std::min(rows, kSuperBlock), super_columns = std::min(columns, kSuperBlock);
  const Dim a_panels = ceiling(super_rows, kTileRows), b_panels = ceiling(super_columns, kTileColumns<T>);
  const Dim most_depth = std::min(depth, kDepth);
  // With few rows one piece of work has all of A, so it packs a panel of B for itself, just before its use.
  const bool few_rows = rows <= kCachedRows;
  const Dim a_size = a_panels * panel_size<kTileRows, T>(most_depth);
  const Dim b_size = (few_rows ? pool_.threads() : b_panels) * panel_size<kTileColumns<T>, T>(most_depth);
  const Workspace workspace(*this, static_cast<std::size_t>(a_size + b_size) * sizeof(T));
  T *const packed_a = workspace.as<T>(), *const packed_b = packed_a + a_size;
  // Waking the others costs some microseconds: not for a product that is over by then.
  const bool alone = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) < 1e5;
  const auto share = [&](Dim pieces, const auto& body) {
    if (alone)
      for (Dim piece = 0; piece < pieces; ++piece) body(piece, 0);
    else pool_.run(pieces, body);
  };

  for (Dim k = 0; k < depth; k += kDepth) {
    const Dim block_depth = std::min(kDepth, depth - k);
    const Dim a_panel = panel_size<kTileRows, T>(block_depth), b_panel = panel_size<kTileColumns<T>, T>(block_depth);
    const bool last = k + block_depth == depth;
    const Start start = k > 0 || options.accumulate ? Start::value : bias ? Start::row : Start::zero;
    for (Dim i0 = 0; i0 < rows; i0 += kSuperBlock) {
      const Dim block_rows = std::min(kSuperBlock, rows - i0);
      for (Dim j0 = 0; j0 < columns; j0 += kSuperBlock) {
        const Dim block_columns = std::min(kSuperBlock, columns - j0);
        const Packing<kTileRows, T> a_packing{a.block(i0, k), block_rows, block_depth, packed_a};
        const Packing<kTileColumns<T>, T> b_packing{b.block(k, j0).transposed(), block_columns, block_depth, packed_b};
        const Dim a_pieces = j0 == 0 ? a_packing.pieces() : 0;  // a row of blocks shares its part of A
        share(a_pieces + (few_rows ? 0 : b_packing.pieces()), [&](Dim piece, int) {
          if (piece < a_pieces) a_packing.pack(piece);
          else b_packing.pack(piece - a_pieces);
        });
        const Blocks blocks = Blocks::choose<T>(block_rows, block_columns, alone ? 1 : pool_.threads());
        const Dim across = ceiling(block_columns, blocks.columns);
        share(ceiling(block_rows, blocks.rows) * across, [&](Dim piece, int thread) {
          const Dim i = piece / across * blocks.rows, j = piece % across * blocks.columns;
          const Dim m = std::min(blocks.rows, block_rows - i), n = std::min(blocks.columns, block_columns - j);
          const Dim at = (i0 + i) * columns + j0 + j;
          const T* const row = bias ? bias + j0 + j : nullptr;
          if (few_rows) {
            T* const panel = packed_b + thread * b_panel;
            for (Dim p = 0; p < n; p += kTileColumns<T>) {
              const Dim width = std::min<Dim>(kTileColumns<T>, n - p);
              Packing<kTileColumns<T>, T>{b.block(k, j0 + j + p).transposed(), width, block_depth, panel}.pack();
              multiply_packed(m, width, block_depth, packed_a, a_panel, panel, b_panel, c + at + p, columns, start, row ? row + p : nullptr);
            }
          } else {
            multiply_packed(m, n, block_depth, packed_a + i / kTileRows * a_panel, a_panel,
                            packed_b + j / kTileColumns<T> * b_panel, b_panel, c + at, columns, start, row);
          }
          if (activated && last) activate(options.activation, c + at, y + at, columns, m, n);
        });
      }
    }
  }
}

void CpuBackend::gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  if (out.elements() == 0) return;
  dispatch_real("gemm", out.dtype(), [&]<class T>() { gemm_typed<T>(a, b, out, options); });
}

}  // namespace bertrand::cpu
