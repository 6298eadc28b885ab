//===- RuntimeCalls.h - How clang 23 and later count ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_RUNTIMECALLS_H
#define ROCOV_PASS_RUNTIMECALLS_H

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace rocov {

class GpuTarget;

/// Removes the counters of the runs by all lanes, which reports of coverage do not
/// show, and puts nulls in their place into the data records. Keeps them if \p M has
/// no coverage mapping, if it is without rocov's device header, or if that asks for
/// them. Call it early, while the calls of the device runtime are not inlined. Returns
/// whether anything changed.
bool dropUniformCounters(llvm::Module &M);

/// Since clang 23, code calls the device runtime to add to a counter, and to the
/// counter of the runs in which all lanes of a wave were active. Replaces these
/// calls in \p F by marks. Returns whether there were any.
bool markRuntimeCalls(llvm::Function &F, const GpuTarget &Target);

/// Replaces the marks of tests whether all lanes are active. Returns whether there
/// were any.
bool testFullMarks(llvm::Function &F, const GpuTarget &Target);

/// Since clang 23, each function stores the size of a wave into its data record.
/// Moves that number to the initial value of the record. Returns whether there
/// was any.
bool settleWaveSize(llvm::Function &F);

} // namespace rocov

#endif // ROCOV_PASS_RUNTIMECALLS_H
