//===- CalleeCounts.h - Counts that callees return --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_CALLEECOUNTS_H
#define ROCOV_PASS_CALLEECOUNTS_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class Module;
} // namespace llvm

namespace rocov {

class GpuTarget;
class Returning;

/// Lets functions of \p M return their counts, so that their callers bring them
/// to memory together with their own: a call in a loop then adds to registers
/// only. \p Promotion turns variables into registers.
void returnCounts(llvm::Module &M, const GpuTarget &Target, Returning &Comes,
                  llvm::FunctionAnalysisManager &AM,
                  llvm::FunctionPassManager &Promotion);

} // namespace rocov

#endif // ROCOV_PASS_CALLEECOUNTS_H
