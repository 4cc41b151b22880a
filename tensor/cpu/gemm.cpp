// How a fast matrix product works, in the large: which blocks of the operands are packed when, and who computes what.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/gemm_tile.h"
#include "tensor/cpu/math.h"

namespace bertrand::cpu {
namespace {

// Up to so many rows are few: the weights that they meet are not worth packing.
constexpr Dim kFewRows = 256;
// A super-block of this many rows or columns of C is packed at once: enough to be shared by all threads, bounded in
// memory.
constexpr Dim kSuperBlock = 4096;
// Of a product with few rows: rows of the other operand that are one piece of work, whole tiles and whole lines of the
// cache in C, and the k that are multiplied at once.
constexpr Dim kTurnedRows = 48, kTurnedDepth = 768;
// Rows and columns of a product of half types that wait in f32 to be rounded: 4 MiB, and few enough operands packed
// twice.
constexpr Dim kSheet = 1024;
// Rows of a sheet lie a little apart: 4 KiB from one to the next, all would share a few places of the caches.
constexpr Dim kSheetGap = 16;

/// The block of C that is one piece of work: columns whose panels fit the second-level cache, and enough pieces for
/// all.
struct Blocks {
  Dim rows, columns;

  template <class P>
  static Blocks choose(Dim rows, Dim columns, int threads) {
    Blocks blocks{round_up(1024, kTileRows<P>), round_up(256, kTileColumns<P>)};
    const auto pieces = [&] { return ceiling(rows, blocks.rows) * ceiling(columns, blocks.columns); };
    const auto halve = [](Dim& n, Dim multiple) { n = round_up(n / 2, multiple); };
    const Dim enough = threads == 1 ? 1 : 6 * threads;
    while (pieces() < enough && blocks.rows > 8 * kTileRows<P>) halve(blocks.rows, kTileRows<P>);
    while (pieces() < enough && blocks.columns > 2 * kTileColumns<P>) halve(blocks.columns, kTileColumns<P>);
    return blocks;
  }
};

/// Waking the others costs some microseconds: not for a product that is over by then.
bool is_alone(Dim rows, Dim columns, Dim depth) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) < 1e5;
}

/// A single column lies along the depth whether it is transposed or not, so it says nothing of how weights lie.
bool has_few_rows(Dim rows, Dim columns, Dim depth) {
  return rows <= kFewRows && columns > 1 && !is_alone(rows, columns, depth);
}

/// Elements that the operands take when packed: a super-block of each at a time, so much of the depth as is multiplied
/// at once.
template <class P>
struct PackedSizes {
  Dim a, b;

  static PackedSizes of(Dim rows, Dim columns, Dim depth) {
    const Dim most = std::min(depth, kDepth);
    return {ceiling(std::min(rows, kSuperBlock), kTileRows<P>) * panel_size<Side::left, P>(most),
            ceiling(std::min(columns, kSuperBlock), kTileColumns<P>) * panel_size<Side::right, P>(most)};
  }
  /// Where the few rows alone are packed; for each thread an edge of the other, and a sheet of Cᵀ.
  static PackedSizes of_few_rows(Dim rows, Dim depth, int threads) {
    return {ceiling(rows, kTileColumns<P>) * panel_size<Side::right, P>(depth),
            threads * (panel_size<Side::left, P>(kTurnedDepth) + kTurnedRows * round_up(rows, kTileColumns<P>))};
  }

  std::size_t bytes() const { return static_cast<std::size_t>(a + b) * sizeof(P); }
};

}  // namespace

/// C = A · B in plain memory: each element of C is a chain of fused multiply-adds from its start value onward.
template <class T>
struct CpuBackend::Product {
  View<T> a, b;
  Dim rows, columns, depth;
  Compute<T>* c;
  Dim stride;  ///< from one row of C to the next
  Start start;
  const Compute<T>* row;  ///< what chains start from where start is Start::row
};

/// A few rows times a matrix whose columns lie in runs of memory: activations times the weights of a linear layer. Each
/// weight is used too few times to be worth packing, so Cᵀ = Bᵀ · Aᵀ is computed, whose left operand is read where it
/// lies. A piece of Cᵀ stays on a sheet in the cache until its chains end, and is turned into C then.
template <class T, class Finish>
void CpuBackend::multiply_few_rows(const Product<T>& p, const Finish& finish) {
  const Dim panel = panel_size<Side::right, T>(p.depth), stride = round_up(p.rows, kTileColumns<T>);
  const auto sizes = PackedSizes<T>::of_few_rows(p.rows, p.depth, pool_.threads());
  const Workspace workspace(*this, sizes.bytes());
  T *const packed = workspace.as<T>(), *const own = packed + sizes.a;
  const Packing<Side::right, T> packing{p.a, p.rows, p.depth, packed};
  pool_.run(packing.pieces(), [&](Dim piece, int) { packing.pack(piece); });

  const View<T> weights = p.b.transposed();
  pool_.run(ceiling(p.columns, kTurnedRows), [&](Dim piece, int thread) {
    const Dim first = piece * kTurnedRows, count = std::min(p.columns - first, kTurnedRows);
    T *const sheet = own + thread * sizes.b / pool_.threads(), *const edge = sheet + kTurnedRows * stride;
    T* const c = p.c + first;
    if (p.start == Start::value) turn(c, p.stride, p.rows, count, sheet, stride);
    for (Dim k = 0; k < p.depth; k += kTurnedDepth) {
      const Dim depth = std::min(kTurnedDepth, p.depth - k);
      const Start start = k > 0 ? Start::value : p.start == Start::row ? Start::column : p.start;
      for (Dim j = 0; j < count; j += kTileRows<T>) {
        const Dim rows = std::min<Dim>(kTileRows<T>, count - j);
        View<T> a = weights.block(first + j, k);
        T starts[kTileRows<T>] = {};
        if (start == Start::column) std::copy_n(p.row + first + j, rows, starts);
        if (rows < kTileRows<T>) {
          pack_panel<kTileRows<T>>(a, rows, depth, edge);
          a = {edge, 1, kTileRows<T>};
        }
        const T* const next =
            first + j + 2 * kTileRows<T> <= p.columns ? weights.block(first + j + kTileRows<T>, k).data : nullptr;
        for (Dim i = 0; i < p.rows; i += kTileColumns<T>)
          for_vectors<T>(p.rows - i, [&]<int Vectors>() {
            compute_tile<Vectors>(depth, a, packed + i / kTileColumns<T> * panel + k * kTileColumns<T>,
                                  sheet + j * stride + i, stride, start, starts, i == 0 ? next : nullptr);
          });
      }
    }
    turn(sheet, stride, count, p.rows, c, p.stride);
    finish(0, first, p.rows, count);
  });
}

/// Calls body(piece, thread) for all pieces; on this thread alone if there is no pool.
template <class Body>
void share(ThreadPool* pool, Dim pieces, const Body& body) {
  if (pool) return pool->run(pieces, body);
  for (Dim piece = 0; piece < pieces; ++piece) body(piece, 0);
}

/// Calls finish(i, j, m, n) for each block of C when it is complete, m × n elements at (i, j), still in the cache.
template <class T, class Finish>
void CpuBackend::multiply_blocks(const Product<T>& p, const Finish& finish) {
  using C = Compute<T>;
  using P = PanelOf<T>;
  const Dim rows = p.rows, columns = p.columns, depth = p.depth;
  const bool alone = is_alone(rows, columns, depth);
  if constexpr (std::is_same_v<T, C>)
    if (has_few_rows(rows, columns, depth) && p.b.row_stride == 1) return multiply_few_rows(p, finish);
  const auto sizes = PackedSizes<P>::of(rows, columns, depth);
  const Workspace workspace(*this, sizes.bytes());
  P *const packed_a = workspace.as<P>(), *const packed_b = packed_a + sizes.a;
  ThreadPool* const pool = alone ? nullptr : &pool_;

  for (Dim k = 0; k < depth; k += kDepth) {
    const Dim block_depth = std::min(kDepth, depth - k);
    const Dim a_panel = panel_size<Side::left, P>(block_depth), b_panel = panel_size<Side::right, P>(block_depth);
    const bool last = k + block_depth == depth;
    const Start start = k > 0 ? Start::value : p.start;
    for (Dim i0 = 0; i0 < rows; i0 += kSuperBlock) {
      const Dim block_rows = std::min(kSuperBlock, rows - i0);
      for (Dim j0 = 0; j0 < columns; j0 += kSuperBlock) {
        const Dim block_columns = std::min(kSuperBlock, columns - j0);
        const Packing<Side::left, T> a_packing{p.a.block(i0, k), block_rows, block_depth, packed_a};
        const Packing<Side::right, T> b_packing{p.b.block(k, j0).transposed(), block_columns, block_depth, packed_b};
        const Dim a_pieces = j0 == 0 ? a_packing.pieces() : 0;  // a row of blocks shares its part of A
        share(pool, a_pieces + b_packing.pieces(), [&](Dim piece, int) {
          if (piece < a_pieces) a_packing.pack(piece);
          else b_packing.pack(piece - a_pieces);
        });
        const Blocks blocks = Blocks::choose<P>(block_rows, block_columns, alone ? 1 : pool_.threads());
        const Dim down = ceiling(block_rows, blocks.rows);
        share(pool, down * ceiling(block_columns, blocks.columns), [&](Dim piece, int) {
          const Dim i = piece % down * blocks.rows, j = piece / down * blocks.columns;
          const Dim m = std::min(blocks.rows, block_rows - i), n = std::min(blocks.columns, block_columns - j);
          C* const to = p.c + (i0 + i) * p.stride + j0 + j;
          const C* const row = p.row ? p.row + j0 + j : nullptr;
          {
            [[maybe_unused]] const Arithmetic<P> arithmetic;
            multiply_packed(m, n, block_depth, packed_a + i / kTileRows<P> * a_panel, a_panel,
                            packed_b + j / kTileColumns<P> * b_panel, b_panel, to, p.stride, start, row);
          }
          if (last) finish(i0 + i, j0 + j, m, n);
        });
      }
    }
  }
}

/// op(x) as the kernel reads it.
template <class T>
View<T> operand(const Tensor& x, bool transposed) {
  const View<T> view{x.as<T>(), x.shape()[1], 1};
  return transposed ? view.transposed() : view;
}

template <class T>
void widen(const T* from, Dim count, Compute<T>* to) {
  for_lanes<Compute<T>>(count, [&](Dim k, Dim n) { Lanes<Compute<T>>::load(from + k, n).store(to + k, n); });
}

template <class T>
void CpuBackend::gemm_typed(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& out, const Gemm& options) {
  using C = Compute<T>;
  const Dim rows = out.shape()[0], columns = out.shape()[1], depth = a_tensor.shape()[options.transpose_a ? 0 : 1];
  const View<T> a = operand<T>(a_tensor, options.transpose_a), b = operand<T>(b_tensor, options.transpose_b);
  T* const y = out.as<T>();
  T* const pre =
      options.activation != Unary::identity && options.pre_activation ? options.pre_activation.as<T>() : nullptr;
  const Start start = options.accumulate ? Start::value : options.bias ? Start::row : Start::zero;

  if constexpr (std::is_same_v<T, C>) {
    C* const c = pre ? pre : y;
    multiply_blocks(
        Product<T>{a, b, rows, columns, depth, c, columns, start, options.bias ? options.bias.as<T>() : nullptr},
        [&](Dim i, Dim j, Dim m, Dim n) {
          if (options.activation == Unary::identity) return;
          for (Dim at = i * columns + j; at < (i + m) * columns; at += columns)
            for_lanes<C>(n, [&](Dim k, Dim l) {
              apply(options.activation, Lanes<C>::load(c + at + k, l)).store(y + at + k, l);
            });
        });
  } else {
    // The chains are kept in C, on a sheet that is a part of the result at a time, and rounded to T once, at their end.
    const Dim width = std::min(columns, kSheet), height = std::min(rows, kSheet);
    const Dim stride = width + kSheetGap;
    const Workspace workspace(*this, static_cast<std::size_t>(stride * (height + 1)) * sizeof(C));
    C *const bias = workspace.as<C>(), *const sheet = bias + stride;
    for (Dim j0 = 0; j0 < columns; j0 += width)
      for (Dim i0 = 0; i0 < rows; i0 += height) {
        const Dim m0 = std::min(height, rows - i0), n0 = std::min(width, columns - j0), corner = i0 * columns + j0;
        if (options.bias) widen(options.bias.as<T>() + j0, n0, bias);
        if (options.accumulate)
          parallel(m0, row_block(n0), [&](Dim begin, Dim end) {
            for (Dim i = begin; i < end; ++i) widen(y + corner + i * columns, n0, sheet + i * stride);
          });
        multiply_blocks(Product<T>{a.block(i0, 0), b.block(0, j0), m0, n0, depth, sheet, stride, start, bias},
                        [&](Dim i, Dim j, Dim m, Dim n) {
                          for (Dim r = i; r < i + m; ++r)
                            for_lanes<C>(n, [&](Dim k, Dim l) {
                              const auto x = Lanes<C>::load(sheet + r * stride + j + k, l);
                              const Dim at = corner + r * columns + j + k;
                              if (pre) x.store(pre + at, l);
                              apply(options.activation, x).store(y + at, l);
                            });
                        });
      }
  }
}

std::size_t CpuBackend::gemm_workspace(const Tensor& a, const Tensor& out, const Gemm& options) const {
  Dim rows = out.shape()[0], columns = out.shape()[1], bytes = 0;
  const Dim depth = a.shape()[options.transpose_a ? 0 : 1];
  dispatch_real("gemm", out.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const bool few_rows = std::is_same_v<T, C> && options.transpose_b && has_few_rows(rows, columns, depth);
    if (!std::is_same_v<T, C>) {
      rows = std::min(rows, kSheet);
      columns = std::min(columns, kSheet);
      bytes = (columns + kSheetGap) * (rows + 1) * static_cast<Dim>(sizeof(C));
    }
    using Sizes = PackedSizes<PanelOf<T>>;
    const Sizes sizes = few_rows ? Sizes::of_few_rows(rows, depth, pool_.threads()) : Sizes::of(rows, columns, depth);
    bytes += static_cast<Dim>(sizes.bytes());
  });
  return static_cast<std::size_t>(bytes);
}

void CpuBackend::gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  if (options.row_sums) sum_rows(a, options.row_sums);
  if (out.elements() == 0) return;
  if (a.elements() == 0) {  // of no depth: every sum is empty
    if (!options.accumulate) fill(out, 0);
    return;
  }
  dispatch_real("gemm", out.dtype(), [&]<class T>() { gemm_typed<T>(a, b, out, options); });
}

}  // namespace bertrand::cpu
