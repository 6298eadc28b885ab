//===- Flush.h - Bringing counts to memory ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_FLUSH_H
#define ROCOV_PASS_FLUSH_H

#include "Accumulators.h"

namespace rocov {

class CopiesTable;
class GpuTarget;

/// Marks that the counts of each lane go to the counters \p Words.
void markCounts(llvm::ArrayRef<Counter> Words, llvm::Instruction *Before,
                   llvm::ArrayRef<LaneCount> Counts);

/// Adds the counts of all active lanes to this unit's copy, with one atomic
/// instruction for each wave.
void addToCopy(const GpuTarget &Target, const CopiesTable &Copies,
               const CountedFunction &Counted, llvm::Instruction *Before,
               llvm::ArrayRef<LaneCount> Counts);

} // namespace rocov

#endif // ROCOV_PASS_FLUSH_H
