//===- Breaks.h - The way out of a loop -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_BREAKS_H
#define ROCOV_PASS_BREAKS_H

namespace llvm {
class Function;
} // namespace llvm

namespace rocov {

/// Lets `break` and `continue` go where they lead. clang sends them through a
/// block that ends the lives of local variables, and a `switch` there. LLVM
/// undoes that if a block with a `break` has nothing else, and then finds how
/// often the loop runs; with a counter in it, the loop would have no bound.
/// Returns whether it changed \p F.
bool threadBreaks(llvm::Function &F);

} // namespace rocov

#endif // ROCOV_PASS_BREAKS_H
