//===- CopiesTable.h - The copies of a unit's counters ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each compute unit counts in a copy of its own, and the drain adds them up.
/// The layout of the table in the section `__rocov_copies` is described in
/// docs/src/internals/counter-copies.md; src/format/copies_table.rs reads it.
///
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_COPIESTABLE_H
#define ROCOV_PASS_COPIESTABLE_H

#include "CounterUpdates.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace llvm {
class GlobalVariable;
class Module;
} // namespace llvm

namespace rocov {

class GpuTarget;

/// Hands out the words of a copy, then makes the copies and the table.
class CopiesTable {
public:
  explicit CopiesTable(const GpuTarget &Target);

  /// Gives each of \p Counters a word of its own, one after the other. Returns
  /// the offset of the first in a copy, in bytes.
  uint64_t add(llvm::ArrayRef<Counter> Counters);

  /// Makes the area with all copies, and the table. Call it once, after the
  /// last add().
  void emit(llvm::Module &M);

  /// The area. Null before emit().
  llvm::GlobalVariable *area() const { return Area; }
  /// The size of a copy in bytes, with the bytes up to the next.
  uint64_t stride() const;
  /// The number of copies, a power of two.
  uint64_t copies() const;

private:
  /// Counters that lie one after the other in an array and in a copy.
  struct Range {
    llvm::GlobalVariable *Array;
    uint64_t First;
    uint64_t Count;
  };

  llvm::SmallVector<Range, 32> Ranges;
  /// The bytes of which a stride is a multiple.
  unsigned Alignment;
  uint64_t Words = 0;
  llvm::GlobalVariable *Area = nullptr;
};

} // namespace rocov

#endif // ROCOV_PASS_COPIESTABLE_H
