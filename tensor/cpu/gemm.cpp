// How a fast matrix product works, in the large: which blocks of the operands are packed when, and who computes what.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/cutter.h"
#include "tensor/cpu/gemm_tile.h"
#include "tensor/cpu/math.h"

namespace bertrand::cpu {
namespace {

// Up to so many rows are few: the weights that they meet are not worth packing.
constexpr Dim kFewRows = 256;
// A super-block of this many rows or columns of C is packed at once: enough to be shared by all threads, bounded in
// memory, whole panels. A batch of 4096 tokens is one.
constexpr Dim kSuperBlock = 4224;
// The most columns of a block of C that is one piece of work.
constexpr Dim kBlockColumns = 256;
// Of a product with few rows: rows of the other operand that are one piece of work, whole tiles and, in f32, whole
// lines of the cache in C; and the k that are multiplied at once.
template <class P>
constexpr Dim kTurnedRows = std::is_same_v<P, TilePair> ? 64 : 48;
template <class P>
constexpr Dim kTurnedDepth = std::max<Dim>(768, kDepth<P>);
// Rows and columns of a product of half types whose chains wait in f32 for the next part of the depth: 4 MiB, and few
// enough operands packed twice.
constexpr Dim kSheet = 1024;
// Rows of a sheet lie a little apart: 4 KiB from one to the next, all would share a few places of the caches.
constexpr Dim kSheetGap = 16;

/// The block of C that is one piece of work: columns whose panels fit the second-level cache, and enough pieces for
/// all.
struct Blocks {
  Dim rows, columns;

  // The choice is for speed alone: blocks of any size give the same bits.
  template <class P>
  static Blocks choose(Dim rows, Dim columns, int threads) {
    Blocks blocks{round_up(1024, kTileRows<P>), kBlockColumns};
    const auto pieces = [&] { return ceiling(rows, blocks.rows) * ceiling(columns, blocks.columns); };
    const auto halve = [](Dim& n, Dim multiple) { n = round_up(n / 2, multiple); };
    const Dim enough = threads == 1 ? 1 : 6 * threads;
    while (pieces() < enough && blocks.rows > 8 * kTileRows<P>) halve(blocks.rows, kTileRows<P>);
    while (pieces() < enough && blocks.columns > 2 * kTileColumns<P>) halve(blocks.columns, kTileColumns<P>);
    // As many blocks, but of one size: threads that begin with as many of them end together.
    const auto even = [](Dim all, Dim& n, Dim multiple) { n = round_up(ceiling(all, ceiling(all, n)), multiple); };
    even(rows, blocks.rows, kTileRows<P>), even(columns, blocks.columns, kTileColumns<P>);
    return blocks;
  }
};

/// Waking the others costs some microseconds: not for a product that is over by then. One thread computes the same bits
/// as several: this is for speed alone.
bool is_alone(Dim rows, Dim columns, Dim depth) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) < 1e5;
}

/// A single column lies along the depth whether it is transposed or not, so it says nothing of how weights lie.
bool has_few_rows(Dim rows, Dim columns, Dim depth) {
  return rows <= kFewRows && columns > 1 && !is_alone(rows, columns, depth);
}

template <class T>
constexpr bool kRounds = !std::is_same_v<T, Compute<T>>;

/// The memory of a product: a super-block of both operands, as far as they are packed, so much of the depth as is
/// multiplied at once; and for each thread the rows of a panel in C, if they are rounded when their chains end.
template <class T>
struct BlocksMemory {
  using P = PanelOf<T>;
  P *left, *right;
  Compute<T>* strips;

  BlocksMemory(Cutter& memory, const View<T>& a, Dim rows, Dim columns, Dim depth, int threads)
      : left(memory.take<P>(LeftPacking<T>::size(a, depth, std::min(rows, kSuperBlock), std::min(depth, kDepth<P>)))),
        right(memory.take<P>(ceiling(std::min(columns, kSuperBlock), kTileColumns<P>) *
                             panel_size<Side::right, P>(std::min(depth, kDepth<P>)))),
        strips(memory.take<Compute<T>>(kRounds<T> && depth <= kDepth<P> ? threads * kTileRows<P> * kBlockColumns : 0)) {
  }
};

/// The memory of a product with few rows: these are packed; and what threads have of their own, one after another.
template <class T>
struct FewRowsMemory {
  using P = PanelOf<T>;
  struct Own {
    P* left;                      ///< of the other operand, as far as it is packed
    Compute<T>*turned, *rounded;  ///< rows of Cᵀ, and the same as rows of C if they are rounded

    Own(Cutter& memory, const View<T>& weights, Dim rows, Dim depth)
        : left(memory.take<P>(LeftPacking<T>::size(weights, depth, kTurnedRows<P>, std::min(depth, kTurnedDepth<P>)))),
          turned(memory.take<Compute<T>>(kTurnedRows<P> * round_up(rows, kTileColumns<P>))),
          rounded(memory.take<Compute<T>>(kRounds<T> ? rows * kTurnedRows<P> : 0)) {}
  };
  Dim part_size;  ///< elements of one part of the depth, of which the last may have fewer
  P* right;
  Dim own_bytes;
  std::byte* own;

  FewRowsMemory(Cutter& memory, const View<T>& weights, Dim rows, Dim depth, int threads)
      : part_size(ceiling(rows, kTileColumns<P>) * panel_size<Side::right, P>(std::min(depth, kTurnedDepth<P>))),
        right(memory.take<P>(ceiling(depth, kTurnedDepth<P>) * part_size)) {
    Cutter counted;
    static_cast<void>(Own(counted, weights, rows, depth));
    own_bytes = counted.used();
    own = memory.take<std::byte>(threads * own_bytes);
  }
  /// That of the depth from k on, of which it has kTurnedDepth at most.
  P* part(Dim k) const { return right + k / kTurnedDepth<P> * part_size; }
  /// Packs rows of a, which is `depth` deep.
  void pack(ThreadPool& pool, const View<T>& a, Dim rows, Dim depth) const {
    const auto packing = [&](Dim k) {
      return RightPacking<T>{a.block(0, k), rows, std::min(kTurnedDepth<P>, depth - k), part(k)};
    };
    const Dim pieces = packing(0).pieces();  // of a part of the depth, the last of which may have fewer
    pool.run(ceiling(depth, kTurnedDepth<P>) * pieces, [&](Dim piece, int) {
      const auto packed = packing(piece / pieces * kTurnedDepth<P>);
      if (piece % pieces < packed.pieces()) packed.pack(piece % pieces);
    });
  }
};

/// What the products of half types take besides: the bias in C, and a sheet where chains wait for the next part of the
/// depth, a part of the result at a time.
template <class T>
struct SheetMemory {
  Dim height, width;  ///< of the parts of the result
  Compute<T>*bias, *sheet = nullptr;

  SheetMemory(Cutter& memory, Dim rows, Dim columns, Dim depth, bool few_rows)
      : height(rows), width(columns), bias(memory.take<Compute<T>>(columns)) {
    if (few_rows || depth <= kDepth<PanelOf<T>>) return;  // for speed alone: these need no sheet
    height = std::min(rows, kSheet), width = std::min(columns, kSheet);
    sheet = memory.take<Compute<T>>(height * (width + kSheetGap));
  }
};

template <class T>
void widen(const T* from, Dim count, Compute<T>* to) {
  for_lanes<Compute<T>>(count, [&](Dim k, Dim n) { Lanes<Compute<T>>::load(from + k, n).store(to + k, n); });
}

/// Where a product goes when its chains end: rounded to T, and what the activation makes of it.
template <class T>
struct Result {
  using C = Compute<T>;
  T *y, *pre;  ///< `pre` keeps what the activation is given, or is null
  Dim columns;
  Unary activation;

  /// Widens what y holds into m × n elements at `to`.
  void load(Dim i, Dim j, Dim m, Dim n, C* to, Dim stride) const {
    for (Dim r = 0; r < m; ++r) widen(y + (i + r) * columns + j, n, to + r * stride);
  }
  void finish(Dim i, Dim j, Dim m, Dim n, const C* from, Dim stride) const {
    const auto store = [&](const auto& activate) {
      for (Dim r = 0; r < m; ++r)
        for_lanes<C>(n, [&](Dim k, Dim l) {
          const auto x = Lanes<C>::load(from + r * stride + k, l);
          const Dim at = (i + r) * columns + j + k;
          if (kRounds<T> && pre) x.store(pre + at, l);
          activate(x).store(y + at, l);
        });
    };
    if (activation != Unary::identity) store([&](const auto& x) { return apply(activation, x); });
    else if (kRounds<T>) store([](const auto& x) { return x; });  // else it is in its place
  }
  Result block(Dim i, Dim j) const {
    const Dim at = i * columns + j;
    return {y + at, pre ? pre + at : nullptr, columns, activation};
  }
};

/// Calls body(piece, thread) for all pieces; on this thread alone if there is no pool.
template <class Body>
void share(ThreadPool* pool, Dim pieces, const Body& body) {
  if (pool) return pool->run(pieces, body);  // for speed alone: one thread computes the same
  for (Dim piece = 0; piece < pieces; ++piece) body(piece, 0);
}

/// op(x) as the kernel reads it.
template <class T>
View<T> operand(const Tensor& x, bool transposed) {
  const View<T> view{x.as<T>(), x.shape()[1], 1};
  return transposed ? view.transposed() : view;
}

}  // namespace

/// C = A · B in plain memory: each element of C is a chain of fused multiply-adds from its start value onward.
template <class T>
struct CpuBackend::Product {
  View<T> a, b;
  Dim rows, columns, depth;
  Start start;
  const Compute<T>* row;  ///< what chains start from if start is Start::row
  Result<T> result;
  Compute<T>* c = nullptr;  ///< where chains wait for the next part of the depth, or C itself; null: on strips
  Dim stride = 0;           ///< from one of its rows to the next
};

/// A few rows times a matrix whose columns lie in runs of memory: activations times the weights of a linear layer. Each
/// weight is used too few times to be worth packing, so Cᵀ = Bᵀ · Aᵀ is computed, whose left operand is read where it
/// lies, or packed for one piece of work. A piece of Cᵀ stays in the cache until its chains end, and is turned into C
/// then.
template <class T>
void CpuBackend::multiply_few_rows(const Product<T>& p) {
  using C = Compute<T>;
  using P = PanelOf<T>;
  using Memory = FewRowsMemory<T>;
  const View<T> weights = p.b.transposed();
  const Workspace workspace(*this, bytes_of<Memory>(weights, p.rows, p.depth, pool_.threads()));
  Cutter cutter(workspace.as<std::byte>());
  const Memory memory(cutter, weights, p.rows, p.depth, pool_.threads());

  memory.pack(pool_, p.a, p.rows, p.depth);

  pool_.run(ceiling(p.columns, kTurnedRows<P>), [&](Dim piece, int thread) {
    Cutter own_cutter(memory.own + thread * memory.own_bytes);
    const typename Memory::Own own(own_cutter, weights, p.rows, p.depth);
    const Dim first = piece * kTurnedRows<P>, count = std::min(p.columns - first, kTurnedRows<P>);
    const Dim stride = round_up(p.rows, kTileColumns<P>);
    C* const c = kRounds<T> ? own.rounded : p.c + first;
    const Dim c_stride = kRounds<T> ? kTurnedRows<P> : p.stride;
    if (p.start == Start::value) {
      if (kRounds<T>) p.result.load(0, first, p.rows, count, c, c_stride);
      turn(c, c_stride, p.rows, count, own.turned, stride);
    } else if (p.start == Start::row) {
      for (Dim r = 0; r < count; ++r) std::fill_n(own.turned + r * stride, stride, p.row[first + r]);
    }
    for (Dim k = 0; k < p.depth; k += kTurnedDepth<P>) {
      const Dim depth = std::min(kTurnedDepth<P>, p.depth - k), panel = panel_size<Side::right, P>(depth);
      const LeftPacking<T> left{weights.block(first, k), count, depth, own.left};
      for (Dim i = 0; i < left.pieces(); ++i) left.pack(i);
      const LeftPanels<P> panels = left.panels();
      const bool ahead = LeftPacking<T>::in_place(left.x, depth);
      const Start start = k > 0 || p.start != Start::zero ? Start::value : Start::zero;
      [[maybe_unused]] const Arithmetic<P> arithmetic;
      for (Dim j = 0; j < count; j += kTileRows<P>) {
        const View<P> a = panels.panel(j, count - j);
        // What is fetched ahead is for speed alone.
        const P* next = ahead && first + j + 2 * kTileRows<P> <= p.columns ? a.data + panels.next : nullptr;
        for (Dim i = 0; i < p.rows; i += kTileColumns<P>, next = nullptr)
          for_vectors<P, C>(p.rows - i, [&]<int Vectors, class V>() {
            compute_tile<Vectors, V>(depth, a, memory.part(k) + i / kTileColumns<P> * panel,
                                     own.turned + j * stride + i, stride, start, static_cast<const C*>(nullptr), next);
          });
      }
    }
    turn(own.turned, stride, count, p.rows, c, c_stride);
    p.result.finish(0, first, p.rows, count, c, c_stride);
  });
}

template <class T>
void CpuBackend::multiply_blocks(const Product<T>& p) {
  using C = Compute<T>;
  using P = PanelOf<T>;
  const Dim rows = p.rows, columns = p.columns, depth = p.depth;
  const bool alone = is_alone(rows, columns, depth);
  const Workspace workspace(*this, bytes_of<BlocksMemory<T>>(p.a, rows, columns, depth, pool_.threads()));
  Cutter cutter(workspace.as<std::byte>());
  const BlocksMemory<T> memory(cutter, p.a, rows, columns, depth, pool_.threads());
  ThreadPool* const pool = alone ? nullptr : &pool_;

  for (Dim k = 0; k < depth; k += kDepth<P>) {
    const Dim block_depth = std::min(kDepth<P>, depth - k), b_panel = panel_size<Side::right, P>(block_depth);
    const bool last = k + block_depth == depth;
    const Start start = k > 0 ? Start::value : p.start;
    for (Dim i0 = 0; i0 < rows; i0 += kSuperBlock) {
      const Dim block_rows = std::min(kSuperBlock, rows - i0);
      for (Dim j0 = 0; j0 < columns; j0 += kSuperBlock) {
        const Dim block_columns = std::min(kSuperBlock, columns - j0);
        const LeftPacking<T> left{p.a.block(i0, k), block_rows, block_depth, memory.left};
        const RightPacking<T> right{p.b.block(k, j0).transposed(), block_columns, block_depth, memory.right};
        const Dim left_pieces = j0 == 0 ? left.pieces() : 0;  // a row of blocks shares its part of A
        share(pool, left_pieces + right.pieces(), [&](Dim piece, int) {
          if (piece < left_pieces) left.pack(piece);
          else right.pack(piece - left_pieces);
        });
        const Blocks blocks = Blocks::choose<P>(block_rows, block_columns, alone ? 1 : pool_.threads());
        const Dim down = ceiling(block_rows, blocks.rows), across = ceiling(block_columns, blocks.columns);
        // Row by row: those that a thread begins with are its own in the kernels before and after, too.
        share(pool, down * across, [&](Dim piece, int thread) {
          const Dim i = piece / across * blocks.rows, j = piece % across * blocks.columns;
          const Dim m = std::min(blocks.rows, block_rows - i), n = std::min(blocks.columns, block_columns - j);
          const Dim stride = p.c ? p.stride : kBlockColumns;
          C* const c = p.c ? p.c + (i0 + i) * stride + j0 + j : memory.strips + thread * kTileRows<P> * kBlockColumns;
          const auto load = [&](Dim r, Dim count, C* to) {
            if (kRounds<T> && k == 0 && start == Start::value) p.result.load(i0 + i + r, j0 + j, count, n, to, stride);
          };
          const auto finish = [&](Dim r, Dim count, const C* from) {
            if (last) p.result.finish(i0 + i + r, j0 + j, count, n, from, stride);
          };
          multiply_prepared<P, C>(
              {m, n, block_depth, left.panels().from(i), memory.right + j / kTileColumns<P> * b_panel, b_panel, c,
               stride, p.c ? kTileRows<P> * stride : 0, start, p.row ? p.row + j0 + j : nullptr},
              load, finish);
        });
      }
    }
  }
}

template <class T>
void CpuBackend::gemm_typed(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& out, const Gemm& options) {
  const Dim rows = out.shape()[0], columns = out.shape()[1], depth = a_tensor.shape()[options.transpose_a ? 0 : 1];
  const Start start = options.accumulate ? Start::value : options.bias ? Start::row : Start::zero;
  Product<T> p{operand<T>(a_tensor, options.transpose_a),
               operand<T>(b_tensor, options.transpose_b),
               rows,
               columns,
               depth,
               start,
               nullptr,
               {out.as<T>(), nullptr, columns, options.activation}};
  if (options.activation != Unary::identity) p.result.pre = options.pre_activation.as<T>();
  const bool few_rows = has_few_rows(rows, columns, depth) && p.b.row_stride == 1;

  if constexpr (!kRounds<T>) {
    p.row = options.bias ? options.bias.as<T>() : nullptr;
    p.c = p.result.pre ? p.result.pre : p.result.y;
    p.stride = columns;
    few_rows ? multiply_few_rows(p) : multiply_blocks(p);
  } else {
    using Memory = SheetMemory<T>;
    const Workspace workspace(*this, bytes_of<Memory>(rows, columns, depth, few_rows));
    Cutter cutter(workspace.as<std::byte>());
    const Memory memory(cutter, rows, columns, depth, few_rows);
    if (options.bias) widen(options.bias.as<T>(), columns, memory.bias);
    p.row = memory.bias;
    if (few_rows) return multiply_few_rows(p);
    for (Dim j = 0; j < columns; j += memory.width)
      for (Dim i = 0; i < rows; i += memory.height)
        multiply_blocks(Product<T>{p.a.block(i, 0), p.b.block(0, j), std::min(memory.height, rows - i),
                                   std::min(memory.width, columns - j), depth, start, p.row + j, p.result.block(i, j),
                                   memory.sheet, memory.width + kSheetGap});
  }
}

std::size_t CpuBackend::gemm_workspace(const Tensor& a_tensor, const Tensor& out, const Gemm& options) const {
  const Dim rows = out.shape()[0], columns = out.shape()[1];
  const Dim depth = a_tensor.shape()[options.transpose_a ? 0 : 1];
  std::size_t bytes = 0;
  dispatch_real("gemm", out.dtype(), [&]<class T>() {
    const int threads = pool_.threads();
    const View<T> of_a{nullptr, a_tensor.shape()[1], 1}, weights{nullptr, depth, 1};
    const View<T> a = options.transpose_a ? of_a.transposed() : of_a;
    const bool few_rows = options.transpose_b && has_few_rows(rows, columns, depth);
    Dim height = rows, width = columns;
    if constexpr (kRounds<T>) {
      Cutter counted;
      const SheetMemory<T> memory(counted, rows, columns, depth, few_rows);
      height = memory.height, width = memory.width;
      bytes = static_cast<std::size_t>(counted.used());
    }
    bytes += few_rows ? bytes_of<FewRowsMemory<T>>(weights, rows, depth, threads)
                      : bytes_of<BlocksMemory<T>>(a, height, width, depth, threads);
  });
  return bytes;
}

void CpuBackend::gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  if (a.elements() == 0) {  // of no depth: every sum is empty
    if (!options.accumulate) fill(out, 0);
    return;
  }
  dispatch_real("gemm", out.dtype(), [&]<class T>() { gemm_typed<T>(a, b, out, options); });
}

}  // namespace bertrand::cpu
