//===- Accumulators.h - Counting in registers -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_ACCUMULATORS_H
#define ROCOV_PASS_ACCUMULATORS_H

#include "CounterUpdates.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/PassManager.h"

#include <cstdint>

namespace llvm {
class Function;
class Instruction;
class LoopInfo;
class ScalarEvolution;
class Value;
} // namespace llvm

namespace rocov {

class GpuTarget;
class Returning;

/// The counters that a function adds to: its words.
struct CountedFunction {
  llvm::Function *F;
  llvm::SmallVector<CounterUpdate, 16> Updates;
  /// For each update its word.
  llvm::SmallVector<unsigned, 16> WordOf;
  /// For each word its counter. The first Paired words are counters, and the next
  /// Paired words count the runs of these in which all lanes were active.
  llvm::SmallVector<Counter, 16> Words;
  unsigned Paired = 0;
  /// Set if a later run of the pass replaces marks.
  bool MayMark = true;
  /// The place of the first word in a copy, in bytes.
  uint64_t Offset = 0;
  /// Steps that all lanes of a wave share, as far as analysis knows.
  llvm::SmallPtrSet<llvm::Value *, 8> Uniform;

  /// The instructions in which the thread may end.
  llvm::SmallVector<llvm::Instruction *, 4> Ends;

  explicit CountedFunction(llvm::Function &F);

private:
  void pairWords();

public:
  /// Finds the steps that all lanes share.
  void findUniform(const llvm::UniformityInfo &Known);

  /// Tests before loops whether all lanes run the blocks in them, if that does not
  /// change in the loop.
  void testBeforeLoops(const GpuTarget &Target, const Returning &Comes,
                       llvm::UniformityInfo &Known);

  /// Finds the instructions in which the thread may end. Splits blocks there, so
  /// that a thread runs all of a block or none.
  void splitAtEnds(const Returning &Comes);
};

/// What optimised code shows about loops. Null pointers for code that is not
/// optimised.
struct LoopFacts {
  llvm::LoopInfo *Loops = nullptr;
  llvm::ScalarEvolution *Evolution = nullptr;

  static LoopFacts of(llvm::Function &F, llvm::FunctionAnalysisManager &AM);
};

/// The most blocks outside and inside of loops that are counted in registers.
/// The counts of others go to memory at once.
constexpr unsigned MaxBits = 32, MaxNumbers = 16;

/// A lane's count of something, and the words that it goes to.
struct LaneCount {
  /// i1, i32 or i64, unsigned.
  llvm::Value *Count;
  /// The words of the function, each with a factor.
  llvm::ArrayRef<std::pair<unsigned, uint64_t>> Words;
};

/// Brings the counts of lanes to memory before \p Before.
using Bring = llvm::function_ref<void(llvm::Instruction *Before,
                                      llvm::ArrayRef<LaneCount> Counts)>;

/// Makes \p Counted count in registers, and bring the counts to memory before a
/// thread leaves it. Marks the turns of loops without a bound.
/// \p Known says which branches lanes take together. Null for code that is not
/// optimised.
void accumulate(CountedFunction &Counted, const GpuTarget &Target,
                LoopFacts Facts, llvm::UniformityInfo *Known, Bring Bring);

/// Makes an end of the marks of turns in \p F: no turn is due in loops that turned
/// out to have a bound. Returns whether there were such loops.
bool dropBoundedTurns(llvm::Function &F, LoopFacts Facts);

/// Replaces the other marks of turns in \p F by counts of the turns.
void countTurns(llvm::Function &F);

} // namespace rocov

#endif // ROCOV_PASS_ACCUMULATORS_H
