//===- CounterUpdates.h - The places where code counts ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_COUNTERUPDATES_H
#define ROCOV_PASS_COUNTERUPDATES_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace llvm {
class CallInst;
class DataLayout;
class Function;
class GlobalVariable;
class IRBuilderBase;
class Instruction;
class Use;
class Value;
} // namespace llvm

namespace rocov {

/// One 64-bit word of a function's counters.
struct Counter {
  llvm::GlobalVariable *Array;
  uint64_t Index;

  bool operator==(const Counter &Other) const {
    return Array == Other.Array && Index == Other.Index;
  }
};

/// An instruction that adds to a counter: an atomic addition by InstrProfiling's
/// lowering, or a mark of this pass.
struct CounterUpdate {
  llvm::Instruction *Add;
  Counter Word;

  /// The number that it adds: i64, in marks also i1 or i32, unsigned.
  llvm::Value *step() const;
  llvm::Use &stepUse() const;
};

/// The counter at a constant address.
std::optional<Counter> counterAt(llvm::Value *Address,
                                 const llvm::DataLayout &DL);

/// Returns whether \p Variable holds 64-bit counters: those of
/// `-fprofile-instr-generate` or `-fprofile-generate`, or the counters of
/// uniform waves that clang 23 added. Single bytes and bitmaps do not.
bool isCounterArray(const llvm::GlobalVariable &Variable);

/// The counter updates of \p F, before or after markUpdate(). Leaves out atomic instructions whose address is
/// not a constant: they go on to add to LLVM's own counter.
llvm::SmallVector<CounterUpdate, 16> findCounterUpdates(llvm::Function &F);

/// Returns whether \p I is one of them.
bool isCounterUpdate(llvm::Instruction &I);

/// Marks that code adds \p Step (i1, i32 or i64, unsigned) to \p Word. To other passes, a mark is a
/// call that no memory of the program depends on.
void markUpdate(llvm::IRBuilderBase &B, const Counter &Word, llvm::Value *Step);

/// Marks a test whether all lanes of the wave are active (i1). A test by a vote would
/// keep other passes from changing loops.
llvm::Value *markFull(llvm::IRBuilderBase &B);

/// Returns whether \p Value is the result of such a mark.
bool isFullMark(const llvm::Value *Value);

/// The marks of such tests in \p F.
llvm::SmallVector<llvm::CallInst *, 4> findFullMarks(llvm::Function &F);

/// Marks one more turn of a loop that may run without end. The result (i1) says
/// whether the counts should go to memory now.
llvm::Value *markTurn(llvm::IRBuilderBase &B);

/// The marks of turns in \p F.
llvm::SmallVector<llvm::CallInst *, 4> findTurns(llvm::Function &F);

} // namespace rocov

#endif // ROCOV_PASS_COUNTERUPDATES_H
