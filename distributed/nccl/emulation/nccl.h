// The part of NCCL that this project calls, with the names, arguments and return values of its own <nccl.h>. Replicas
// are threads of one process; the last one that comes makes the sum. Only communicators that do not block exist.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/cuda/emulation/runtime.h"

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t { ncclUint8 = 1, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat64 = 8, ncclBfloat16 = 9 };
enum ncclRedOp_t { ncclSum = 0 };
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking = 1;
};
#define NCCL_CONFIG_INITIALIZER \
  {}
using ncclComm_t = struct EmulatedCommunicator*;

const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t communicator);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclCommAbort(ncclComm_t communicator);
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream);

namespace bertrand::nccl::emulation {

/// What goes wrong at one replica: at call `call` (joining is 0, then sums and broadcasts from 1) its communicator gets
/// into `state` and does nothing any more. With ncclInProgress it is only late, by `polls` looks at its state.
struct Fault {
  int rank = -1;
  std::int64_t call = 0;
  ncclResult_t state = ncclRemoteError;
  int polls = 0;
  bool returns = true;  ///< false: the call never returns
};
/// For all groups from now on; {} is none.
void inject(const Fault& fault);
/// Communicators that were neither destroyed nor aborted.
int open_communicators();

}  // namespace bertrand::nccl::emulation
