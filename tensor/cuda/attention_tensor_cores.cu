// Attention in bf16 and f16 on the tensor cores: the mathematics of attention.cu, whose kernels are easier to read
// first. A block of four warps owns 64 rows, 16 for each warp, and meets the others a tile of 64 at a time; while it
// computes with one tile the next is on its way. The products of a warp are 16 × 64, or twice 16 × 32 where registers
// are short; their results stay in its registers and become the left operand of the next product (mma.h says how).
//
// Probabilities are powers of two: e^(s / √d − L) = 2^(s log₂e / √d − L log₂e) is one multiplication and one
// instruction. The dropout's scale is a factor of whole results, so that a dropped probability is only set to 0.
#include "tensor/cuda/attention.h"
#include "tensor/cuda/dropout.h"
#include "tensor/cuda/mma.h"

namespace bertrand::cuda {
namespace {

constexpr int kOwnRows = 64, kTileRows = 64, kBlockThreads = 128;
constexpr int kTilePieces = kTileRows / 8;  // results of 8 columns over the rows of a tile
constexpr float kLog2E = 1.4426950408889634f;

/// This lane's place in a piece.
struct Lane {
  int warp, g, t;
  __device__ Lane()
      : warp(static_cast<int>(threadIdx.x) / 32),
        g(static_cast<int>(threadIdx.x) % 32 / 4),
        t(static_cast<int>(threadIdx.x) % 4) {}
};

/// combine() over the four lanes that hold one row.
template <class Combine>
__device__ float over_row(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(kAllLanes, x, 1));
  return combine(x, __shfl_xor_sync(kAllLanes, x, 2));
}

/// 64 rows of kDim elements in shared memory, in pairs along a row.
template <int kDim>
struct Tile {
  static constexpr int kStride = kDim / 2 + 4,
                       kBytes = kTileRows * kStride * 4;  // 4 apart: eight rows of a block lie in all banks
  SharedSpan<Pair> pairs;
  __device__ explicit Tile(int& byte) : pairs(byte, kTileRows * kStride) { byte += kBytes; }

  /// Starts to copy rows, by all threads of the block; those after the end become 0.
  template <class T>
  __device__ void start_fill(const T* from, Dim stride, Dim left) const {
    constexpr int kOfRow = kDim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kOfRow; i += kBlockThreads) {
      const int row = i / kOfRow, column = i % kOfRow;
      const bool there = row < left;
      start_copy(pairs, row * kStride + column * 4, there ? from + row * stride + column * 8 : from, there);
    }
  }
  /// Right operands whose columns are rows 8j … 8j + 7, and the next 8, of the tile; elements 16k … 16k + 15 are their
  /// rows.
  __device__ void rows_as_columns(PieceB (&out)[2], int j, int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Pair blocks[4];
    load_blocks<false>(blocks, pairs, (8 * j + lane / 16 * 8 + lane % 8) * kStride + 8 * k + lane / 8 % 2 * 4);
    out[0] = {{blocks[0], blocks[1]}};
    out[1] = {{blocks[2], blocks[3]}};
  }
  /// Right operands whose rows are rows 16k … 16k + 15 of the tile; columns 8n … 8n + 7, and the next 8.
  __device__ void rows_as_rows(PieceB (&out)[2], int n, int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Pair blocks[4];
    load_blocks<true>(blocks, pairs, (16 * k + lane % 16) * kStride + 4 * (n + lane / 16));
    out[0] = {{blocks[0], blocks[1]}};
    out[1] = {{blocks[2], blocks[3]}};
  }
};

/// A warp's 16 rows as the left operand, straight from memory; rows after the end are 0.
template <class T, int kDim>
struct OwnRows {
  PieceA pieces[kDim / 16];

  __device__ OwnRows(const T* from, Dim stride, Dim left, const Lane& lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane.g + i % 2 * 8, pair = lane.t + i / 2 * 4;
      for (int k = 0; k < kDim / 16; ++k)
        pieces[k].pairs[i] = row < left ? reinterpret_cast<const Pair*>(from + row * stride)[8 * k + pair] : Pair(0);
    }
  }
  /// own · tileᵀ [16, 8 kPieces], of the tile's rows from 8 · first on
  template <int kPieces>
  __device__ void times_transposed(const Tile<kDim>& tile, int first, PieceD (&out)[kPieces]) const {
    for (int j = 0; j < kPieces; j += 2) {
      out[j] = out[j + 1] = {};
      for (int k = 0; k < kDim / 16; ++k) {
        PieceB right[2];
        tile.rows_as_columns(right, first + j, k);
        mma<T>(out[j], pieces[k], right[0]);
        mma<T>(out[j + 1], pieces[k], right[1]);
      }
    }
  }
  /// Σ own ∘ other over row g, and over row g + 8.
  __device__ void dots(const OwnRows& other, float (&out)[2]) const {
    const auto element = [](Pair pair, int half) { return to_float(of_pair<T>(pair, half)); };
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < kDim / 16; ++k)
        for (int half = 0; half < 2; ++half)
          out[i % 2] += element(pieces[k].pairs[i], half) * element(other.pieces[k].pairs[i], half);
    for (float& sum : out) sum = over_row(sum, Sum{});
  }
};

/// out [16, kDim] += weights [16, 8 kPieces] · the tile's rows from 8 · first on
template <class T, int kDim, int kPieces>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceD (&weights)[kPieces], const Tile<kDim>& tile,
                            int first) {
  for (int k = 0; k < kPieces / 2; ++k) {
    const PieceA left = as_a<T>(weights[2 * k], weights[2 * k + 1]);
    for (int n = 0; n < kDim / 8; n += 2) {
      PieceB right[2];
      tile.rows_as_rows(right, n, first / 2 + k);
      mma<T>(out[n], left, right[0]);
      mma<T>(out[n + 1], left, right[1]);
    }
  }
}

/// Row `half` (0: g, 1: g + 8) of a warp's result, times a factor, to memory.
template <class T, int kDim>
__device__ void store_row(T* to, const PieceD (&out)[kDim / 8], int half, float factor, const Lane& lane) {
  for (int n = 0; n < kDim / 8; ++n)
    reinterpret_cast<Pair*>(to)[4 * n + lane.t] =
        make_pair<T>(out[n].values[2 * half] * factor, out[n].values[2 * half + 1] * factor);
}

/// The tiles of two operands from row `first` of the sequence on. The next two lie beside them.
template <int kDim>
struct Tiles {
  static constexpr int kBytes = 2 * Tile<kDim>::kBytes;
  int byte;
  Tile<kDim> a, b;
  __device__ explicit Tiles(Dim first) : byte(static_cast<int>(first / kTileRows % 2) * kBytes), a(byte), b(byte) {}
};

/// body(tiles, first, left) for the tiles of a sequence, one after the other; start(tiles, first, left) has begun to
/// fill each of them one tile earlier.
template <int kDim, class Start, class Body>
__device__ void for_tiles(Dim length, const Start& start, const Body& body) {
  const auto start_from = [&](Dim first) {
    if (first < length) start(Tiles<kDim>(first), first, length - first);
    end_copies();
  };
  start_from(0);
  for (Dim first = 0; first < length; first += kTileRows) {
    start_from(first + kTileRows);
    wait_for_copies<1>();
    __syncthreads();
    body(Tiles<kDim>(first), first, length - first);
    __syncthreads();  // the tiles after the next are filled where these are
  }
}

constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// Scores of keys after the sequence's end become -∞; `left` are left from the first piece on.
template <int kPieces>
__device__ void limit(PieceD (&scores)[kPieces], Dim left, const Lane& lane) {
  if (left >= 8 * kPieces) return;
#pragma unroll
  for (int j = 0; j < kPieces; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (8 * j + 2 * lane.t + i % 2 >= left) scores[j].values[i] = kLeast;
}

/// The keys that the dropout keeps for this lane's two queries, of the 128 keys of two tiles: bit 4 h + c says it of
/// the key in column 2t, 2t + 1, 2t + 8, 2t + 9 (for c = 0 … 3) of the h-th sixteen.
struct KeptKeys {
  std::uint32_t of_query[2] = {};

  template <class T>
  __device__ void draw(const AttentionInputs<T>& in, const AttentionPlace& place, Dim first_query, Dim first,
                       const Lane& lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Dim query = first_query + 8 * half;
      of_query[half] = 0;
      if (query >= place.length) continue;
      const std::int64_t row_key = in.dropout.row_keys[place.first + query];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const auto words = dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), first / 128,
                                         8 * (c / 2) + 2 * lane.t + c % 2);
#pragma unroll
        for (int h = 0; h < 8; ++h)
          if (keeps(in.dropout, words, h)) of_query[half] |= 1u << (4 * h + c);
      }
    }
  }
  /// What is dropped becomes 0; `first` is the key of the first piece's first column.
  template <int kPieces>
  __device__ void drop(PieceD (&values)[kPieces], Dim first) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t kept = of_query[half] >> (first % 128 / 16 * 4);
#pragma unroll
      for (int j = 0; j < kPieces; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if ((kept >> (2 * j + e) & 1) == 0) values[j].values[2 * half + e] = 0;
    }
  }
};

template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) forward_kernel(AttentionInputs<T> in, T* context, float* log_sum) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E;

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  PieceD out[kDim / 8];
  KeptKeys kept;
  float most[2] = {kLeast, kLeast}, total[2] = {0, 0};
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 1, first), stride, left);
    tiles.b.start_fill(row_of(in, place, 2, first), stride, left);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    PieceD p[kTilePieces];
    q.times_transposed(tiles.a, 0, p);
    limit(p, left, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float greatest = most[half];
      for (int j = 0; j < kTilePieces; ++j)  // a NaN is passed over here and comes back as its power
        for (int e = 0; e < 2; ++e) greatest = std::fmax(greatest, p[j].values[2 * half + e]);
      greatest = over_row(greatest, Most{});
      const float correction = quick_exp2((most[half] - greatest) * exponent), subtracted = greatest * exponent;
      most[half] = greatest;
      total[half] *= correction;
      for (int n = 0; n < kDim / 8; ++n)
        for (int e = 0; e < 2; ++e) out[n].values[2 * half + e] *= correction;
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e)
          total[half] += p[j].values[2 * half + e] = quick_exp2(p[j].values[2 * half + e] * exponent - subtracted);
    }
    if (in.dropout.threshold != 0) {
      if (first % 128 == 0) kept.draw(in, place, first_query, first, lane);
      kept.drop(p, first);
    }
    add_product<T, kDim>(out, p, tiles.b, 0);
  });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = over_row(total[half], Sum{});
    const Dim query = first_query + 8 * half, token = place.first + query;
    if (query >= place.length) continue;
    store_row<T, kDim>(context + token * in.hidden + place.head * kDim, out, half,
                       static_cast<float>(in.dropout.scale) / sum, lane);
    if (lane.t == 0) log_sum[token * in.heads + place.head] = most[half] * scale + std::log(sum);
  }
}

constexpr int kParts = 2;  // of a tile, in backward: its products fill half as many registers
constexpr int kPartPieces = kTilePieces / kParts;

/// dq: a warp owns queries and meets the keys. Leaves rowsum(dO ∘ O) of its queries for dkv_kernel.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dq_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E,
              dropout_scale = static_cast<float>(in.dropout.scale);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  const Dim own = (place.first + first_own) * in.hidden + place.head * kDim;
  const OwnRows<T, kDim> dout(saved.dcontext + own, in.hidden, place.length - first_own, lane);
  float log_sum[2] = {0, 0}, dots[2] = {0, 0};
  dout.dots(OwnRows<T, kDim>(saved.context + own, in.hidden, place.length - first_own, lane), dots);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim query = first_query + 8 * half, row = (place.first + query) * in.heads + place.head;
    if (query >= place.length) continue;
    log_sum[half] = saved.log_sum[row] * kLog2E;
    if (lane.t == 0) saved.dots[row] = dots[half];
  }
  PieceD dq[kDim / 8];
  KeptKeys kept;
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 1, first), stride, left);
    tiles.b.start_fill(row_of(in, place, 2, first), stride, left);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    if (in.dropout.threshold != 0 && first % 128 == 0) kept.draw(in, place, first_query, first, lane);
#pragma unroll 1
    for (int piece = 0; piece < kTilePieces; piece += kPartPieces) {
      PieceD p[kPartPieces], ds[kPartPieces];
      q.times_transposed(tiles.a, piece, p);
      dout.times_transposed(tiles.b, piece, ds);
      limit(p, left - 8 * piece, lane);
      if (in.dropout.threshold != 0) kept.drop(ds, first + 8 * piece);
      for (int j = 0; j < kPartPieces; ++j)
        for (int i = 0; i < 4; ++i)
          ds[j].values[i] =
              quick_exp2(p[j].values[i] * exponent - log_sum[i / 2]) * (ds[j].values[i] * dropout_scale - dots[i / 2]);
      add_product<T, kDim>(dq, ds, tiles.a, piece);
    }
  });
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (first_query + 8 * half < place.length)
      store_row<T, kDim>(gradient_of(in, saved, place, 0, first_query + 8 * half), dq, half, scale, lane);
}

/// Blocks that shall share an SM: three have 168 registers for each thread.
template <int kDim>
constexpr int kBlocks = kDim <= 64 ? 3 : 1;

/// What dkv_kernel knows of the queries of a tile, in shared memory after the tiles. The next ones lie beside them.
struct QueryTile {
  SharedSpan<float> log_sum, dots;
  SharedSpan<std::uint32_t> kept;  ///< [warp][lane]: the dropout's bits; 4 j + 2 e + half is that of query 8j + 2t + e
                                   ///< and of the warp's key g + 8 · half
  static constexpr int kBytes = kTileRows * (4 + 4) + kBlockThreads * 4;
  __device__ QueryTile(Dim first, int byte) : QueryTile(byte + static_cast<int>(first / kTileRows % 2) * kBytes) {}

  template <class T>
  __device__ void fill(const AttentionInputs<T>& in, const AttentionSaved<T>& saved, const AttentionPlace& place,
                       Dim first) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    if (thread < kTileRows) {
      const bool there = first + thread < place.length;
      const Dim row = (place.first + first + thread) * in.heads + place.head;
      log_sum[thread] = there ? saved.log_sum[row] * kLog2E : 0.0f;
      dots[thread] = there ? saved.dots[row] : 0.0f;
    }
    if (in.dropout.threshold != 0) kept[lane % 4 * 32 + lane / 4 * 4 + warp] = draw(in, place, first);
  }

 private:
  __device__ explicit QueryTile(int byte)
      : log_sum(byte, kTileRows), dots(byte + kTileRows * 4, kTileRows), kept(byte + kTileRows * 8, kBlockThreads) {}

  /// A draw gives one query eight bits, of keys that lie 16 apart: one key of each of the four warps, and of the four
  /// of the block's neighbour. Lane 4 j + 2 e + half of the t-th warp draws for query 8j + 2t + e and key g + 8 · half,
  /// so that a vote is the word of lane (g, t) of one warp. Lane 4 g + n gets that of the n-th warp.
  template <class T>
  __device__ std::uint32_t draw(const AttentionInputs<T>& in, const AttentionPlace& place, Dim first) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const Dim query = first + lane / 4 * 8 + warp * 2 + lane / 2 % 2;
    const std::int64_t row_key = query < place.length ? in.dropout.row_keys[place.first + query] : 0;
    std::uint32_t mine = 0;
#pragma unroll
    for (int g = 0; g < 8; ++g) {
      const auto words =
          dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), place.row / 128, g + lane % 2 * 8);
      // The block is one half of a group of 128 keys. It is chosen by a branch: what is indexed by a variable lies in
      // memory.
      const bool later = place.row % 128 != 0;
      const std::array<std::uint32_t, 4> own = {later ? words[2] : words[0], later ? words[3] : words[1]};
#pragma unroll
      for (int of_warp = 0; of_warp < 4; ++of_warp) {
        const unsigned votes = __ballot_sync(kAllLanes, keeps(in.dropout, own, of_warp));
        if (lane == g * 4 + of_warp) mine = votes;
      }
    }
    return mine;
  }
};

/// dk and dv: a warp owns keys and meets the queries; all products are the transposes of those above.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads, kBlocks<kDim>)
    dkv_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E,
              dropout_scale = static_cast<float>(in.dropout.scale);

  const OwnRows<T, kDim> k(row_of(in, place, 1, first_own), stride, place.length - first_own, lane);
  const OwnRows<T, kDim> v(row_of(in, place, 2, first_own), stride, place.length - first_own, lane);
  PieceD dk[kDim / 8], dv[kDim / 8];
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 0, first), stride, left);
    tiles.b.start_fill(saved.dcontext + (place.first + first) * in.hidden + place.head * kDim, in.hidden, left);
    QueryTile(first, 2 * Tiles<kDim>::kBytes).fill(in, saved, place, first);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim) {
    const QueryTile queries(first, 2 * Tiles<kDim>::kBytes);
    std::uint32_t kept = ~0u;
    if (in.dropout.threshold != 0) kept = queries.kept[threadIdx.x];
#pragma unroll 1
    for (int piece = 0; piece < kTilePieces; piece += kPartPieces) {
      PieceD p[kPartPieces], ds[kPartPieces];
      k.times_transposed(tiles.a, piece, p);
      v.times_transposed(tiles.b, piece, ds);
      for (int j = 0; j < kPartPieces; ++j)
        for (int i = 0; i < 4; ++i) {
          const int query = 8 * (piece + j) + 2 * lane.t + i % 2;
          // 1 for a query after the end, whose q and dO are 0.
          const float probability = quick_exp2(p[j].values[i] * exponent - queries.log_sum[query]);
          const bool keeps_it = kept >> (4 * j + i % 2 * 2 + i / 2) & 1;
          p[j].values[i] = keeps_it ? probability : 0.0f;
          ds[j].values[i] = probability * ((keeps_it ? ds[j].values[i] * dropout_scale : 0.0f) - queries.dots[query]);
        }
      add_product<T, kDim>(dv, p, tiles.b, piece);
      add_product<T, kDim>(dk, ds, tiles.a, piece);
      kept >>= 4 * kPartPieces;
    }
  });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim key = first_own + lane.g + half * 8;
    if (key >= place.length) continue;
    store_row<T, kDim>(gradient_of(in, saved, place, 1, key), dk, half, scale, lane);
    store_row<T, kDim>(gradient_of(in, saved, place, 2, key), dv, half, dropout_scale, lane);
  }
}

/// Whether rows can be read 16 bytes at a time. For every head_dim here a row has a multiple of 16 bytes.
bool in_wide_pieces(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

template <class Body>
bool dispatch_head_dim(int head_dim, Body&& body) {
  switch (head_dim) {
    case 16: body.template operator()<16>(); return true;
    case 32: body.template operator()<32>(); return true;
    case 64: body.template operator()<64>(); return true;
    case 128: body.template operator()<128>(); return true;
    default: return false;
  }
}

}  // namespace

template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum,
                               cudaStream_t stream) {
  if (!in_wide_pieces(in.qkv)) return false;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    launch_with_tiles(forward_kernel<T, kDim>, attention_grid(options, kOwnRows), kBlockThreads,
                      2 * Tiles<kDim>::kBytes, stream, in, context, log_sum);
  });
}
template bool attention_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&, BFloat16*, float*,
                                        cudaStream_t);
template bool attention_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&, Float16*, float*,
                                        cudaStream_t);

template <class T>
bool attention_backward_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options,
                                        const AttentionSaved<T>& saved, cudaStream_t stream) {
  if (!in_wide_pieces(in.qkv) || !in_wide_pieces(saved.dcontext)) return false;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    const dim3 grid = attention_grid(options, kOwnRows);
    launch_with_tiles(dq_kernel<T, kDim>, grid, kBlockThreads, 2 * Tiles<kDim>::kBytes, stream, in, saved);
    launch_with_tiles(dkv_kernel<T, kDim>, grid, kBlockThreads, 2 * Tiles<kDim>::kBytes + 2 * QueryTile::kBytes, stream,
                      in, saved);
  });
}
template bool attention_backward_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&,
                                                 const AttentionSaved<BFloat16>&, cudaStream_t);
template bool attention_backward_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&,
                                                 const AttentionSaved<Float16>&, cudaStream_t);

}  // namespace bertrand::cuda
