//===- Cycles.h - Cycles of control flow in each LLVM -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_CYCLES_H
#define ROCOV_PASS_CYCLES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Config/llvm-config.h"

namespace rocov {

#if LLVM_VERSION_MAJOR >= 24
/// A cycle, or null, used like a pointer. LLVM 24 only has the numbers of cycles.
class CyclePtr {
public:
  CyclePtr() = default;
  CyclePtr(const llvm::CycleInfo &Cycles, llvm::CycleRef Number)
      : Cycles(&Cycles), Number(Number) {}

  explicit operator bool() const { return Number.isValid(); }
  bool operator==(CyclePtr Other) const { return Number == Other.Number; }
  bool operator!=(CyclePtr Other) const { return Number != Other.Number; }
  const CyclePtr *operator->() const { return this; }

  llvm::BasicBlock *getHeader() const { return Cycles->getHeader(Number); }
  bool isReducible() const { return Cycles->isReducible(Number); }
  unsigned getDepth() const { return Cycles->getDepth(Number); }
  bool contains(const llvm::BasicBlock *Block) const {
    return Cycles->contains(Number, Block);
  }
  void getExitingBlocks(llvm::SmallVectorImpl<llvm::BasicBlock *> &All) const {
    Cycles->getExitingBlocks(Number, All);
  }
  CyclePtr getParentCycle() const {
    return {*Cycles, Cycles->getParentCycle(Number)};
  }

private:
  friend void appendChildren(CyclePtr, llvm::SmallVectorImpl<CyclePtr> &);

  const llvm::CycleInfo *Cycles = nullptr;
  llvm::CycleRef Number;
};

/// The innermost cycle around \p Block, or null.
inline CyclePtr cycleAround(const llvm::CycleInfo &Cycles,
                            const llvm::BasicBlock *Block) {
  return {Cycles, Cycles.getCycle(Block)};
}

inline void appendChildren(CyclePtr C, llvm::SmallVectorImpl<CyclePtr> &All) {
  for (llvm::CycleRef Child : C.Cycles->children(C.Number))
    All.push_back({*C.Cycles, Child});
}

inline void appendOutermost(const llvm::CycleInfo &Cycles,
                            llvm::SmallVectorImpl<CyclePtr> &All) {
  for (llvm::CycleRef Outermost : Cycles.toplevel_cycles())
    All.push_back({Cycles, Outermost});
}
#else
using CyclePtr = const llvm::Cycle *;

/// The innermost cycle around \p Block, or null.
inline CyclePtr cycleAround(const llvm::CycleInfo &Cycles,
                            const llvm::BasicBlock *Block) {
  return Cycles.getCycle(Block);
}

inline void appendChildren(CyclePtr C, llvm::SmallVectorImpl<CyclePtr> &All) {
  All.append(C->child_begin(), C->child_end());
}

inline void appendOutermost(const llvm::CycleInfo &Cycles,
                            llvm::SmallVectorImpl<CyclePtr> &All) {
  All.append(Cycles.toplevel_begin(), Cycles.toplevel_end());
}
#endif

} // namespace rocov

#endif // ROCOV_PASS_CYCLES_H
