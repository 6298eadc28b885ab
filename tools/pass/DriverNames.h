//===- DriverNames.h - Counters that the CUDA driver knows ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// PTX has no sections, so rocov asks the CUDA driver for each variable with
/// counters by its name (driver 580 tells local ones, too). LLVM does not care
/// for that: it gives the counters of a `static` function a name that PTX does
/// not allow, or one that a static function of another unit may have, and those
/// of a template a definition in each unit.
///
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_DRIVERNAMES_H
#define ROCOV_PASS_DRIVERNAMES_H

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace rocov {

/// A name that no other unit of the program has, in letters that PTX allows.
std::string unitName(const llvm::Module &M);

/// Returns whether \p M shall keep the counters that LLVM makes. rocov's device
/// header says so, if `rocov flags` defines ROCOV_LLVM_COUNTERS.
bool keepsCounters(const llvm::Module &M);

/// Gives the variables of the instrumentation names that PTX takes, gives those
/// that change a name of their own in the program, and lets the linker merge
/// those of one function. Drops the constructor that registers records with a runtime, which
/// CUDA has not. Call it early, while all functions are there, and once more
/// when no variables are added any more.
void nameForDriver(llvm::Module &M);

} // namespace rocov

#endif
