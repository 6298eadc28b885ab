//===- Returning.h - Which calls come back ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_RETURNING_H
#define ROCOV_PASS_RETURNING_H

#include "llvm/ADT/DenseSet.h"

namespace llvm {
class CallBase;
class Function;
class Instruction;
class Module;
} // namespace llvm

namespace rocov {

class GpuTarget;

/// Knows which calls may end the thread: traps, `s_endpgm`, functions of other
/// modules, and functions that call one of them. Counts that are still in
/// registers then would be lost.
class Returning {
public:
  Returning(const llvm::Module &M, const GpuTarget &Target);

  /// Returns whether the thread may end in \p I.
  bool mayEndThread(const llvm::Instruction &I) const;

  /// Tells that \p New has the code of \p Old now.
  void replace(const llvm::Function &Old, const llvm::Function &New);

private:
  bool mayEndIn(const llvm::Function &F) const;

  const GpuTarget &Target;
  /// Functions of this module from which every thread comes back, if it goes on
  /// at all.
  llvm::DenseSet<const llvm::Function *> Comes;
};

} // namespace rocov

#endif // ROCOV_PASS_RETURNING_H
