//===- GpuTarget.h - What waves can do together -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The few operations that differ between AMD and NVIDIA GPUs. A wave is a warp
/// there, and a unit is a CU, a WGP or an SM.
///
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_GPUTARGET_H
#define ROCOV_PASS_GPUTARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"

#include <memory>

namespace llvm {
class CallBase;
class Function;
class Module;
} // namespace llvm

namespace rocov {

class GpuTarget {
public:
  virtual ~GpuTarget();

  /// The target of \p M. Null if it is none that rocov knows.
  static std::unique_ptr<GpuTarget> of(const llvm::Module &M);

  /// A mask (i64) of the active lanes.
  virtual llvm::Value *active(llvm::IRBuilderBase &B) const = 0;
  /// A mask (i64) of those of the active lanes \p Mask for which \p Condition (i1)
  /// holds.
  virtual llvm::Value *ballot(llvm::IRBuilderBase &B, llvm::Value *Condition,
                              llvm::Value *Mask) const = 0;
  /// An i1, true if all lanes of the wave are active.
  virtual llvm::Value *isFull(llvm::IRBuilderBase &B) const = 0;
  /// An i1, true if \p Condition (i1) holds in all lanes of the wave. Call it only
  /// if lanesMeet().
  virtual llvm::Value *holdsInAll(llvm::IRBuilderBase &B,
                                  llvm::Value *Condition) const = 0;
  /// The number (i32) of lanes of a wave.
  virtual llvm::Value *waveSize(llvm::IRBuilderBase &B) const = 0;
  /// Returns whether \p Value is a result of isFull().
  virtual bool isFullTest(const llvm::Value *Value) const = 0;
  /// Returns whether \p Value is a result of isFull() or holdsInAll().
  virtual bool isVote(const llvm::Value *Value) const = 0;
  /// The condition of such a result.
  virtual llvm::Value *votes(llvm::Value *Vote) const = 0;
  /// Returns whether lanes that part run the blocks together in which their ways
  /// meet again, and each block outside of loops once.
  virtual bool lanesMeet() const = 0;
  /// The number (i32) of lanes of \p Mask below this one.
  virtual llvm::Value *lanesBelow(llvm::IRBuilderBase &B,
                                  llvm::Value *Mask) const = 0;
  /// Returns whether the target has writeLane().
  virtual bool hasWriteLane() const = 0;
  /// The number (i32) of this lane in its wave.
  virtual llvm::Value *lane(llvm::IRBuilderBase &B) const = 0;
  /// \p Old (i32 or i64), but \p Value, which all lanes share, in lane \p Lane,
  /// which must be active.
  virtual llvm::Value *writeLane(llvm::IRBuilderBase &B, llvm::Value *Old,
                                 unsigned Lane, llvm::Value *Value) const = 0;
  /// \p Value (i32 or i64) of some active lane, the same for all.
  virtual llvm::Value *anyLane(llvm::IRBuilderBase &B, llvm::Value *Value,
                               llvm::Value *Mask) const = 0;
  /// Returns whether \p Value is a result of anyLane().
  virtual bool isOfAnyLane(const llvm::Value *Value) const = 0;
  /// Returns whether the target has sums().
  virtual bool hasSums(const llvm::Function &F) const = 0;
  /// The sums (i32) of \p Values (i32) over the wave in a few instructions, if
  /// canSum() holds. The sums must fit.
  virtual llvm::SmallVector<llvm::Value *, 8>
  sums(llvm::IRBuilderBase &B, llvm::ArrayRef<llvm::Value *> Values,
       llvm::Value *Mask) const = 0;
  /// Whether (i1) all of the active lanes \p Mask are in \p Votes, and sums() works
  /// with them. If the target has writeLane(), all lanes of the wave are active
  /// then.
  virtual llvm::Value *canSum(llvm::IRBuilderBase &B, llvm::Value *Votes,
                              llvm::Value *Mask) const = 0;
  /// Returns whether sums() takes one instruction for a value, whichever lanes are
  /// active. Then byteOf() is one, too.
  virtual bool sumsAtOnce(const llvm::Function &F) const = 0;
  /// Byte \p Number (i32, of which the low three bits count, and the fourth is 0)
  /// of the eight bytes of \p Low and \p High (i32), with any bits above it.
  virtual llvm::Value *byteOf(llvm::IRBuilderBase &B, llvm::Value *Low,
                              llvm::Value *High, llvm::Value *Number) const = 0;
  /// The number (i32) of the unit that runs this wave, modulo 2^ \p Bits.
  virtual llvm::Value *unit(llvm::IRBuilderBase &B, const llvm::Function &F,
                            unsigned Bits) const = 0;
  /// The bytes of which copies are multiples, so that units do not slow each other
  /// down.
  virtual unsigned copyAlignment() const = 0;
  /// The scope of atomic operations that reach the whole GPU.
  virtual llvm::StringRef deviceScope() const = 0;
  /// Returns whether \p Call ends the thread, or may do so as far as its text
  /// shows.
  virtual bool mayEndThread(const llvm::CallBase &Call) const = 0;

  /// The address space of global memory, in both back ends.
  static constexpr unsigned Global = 1;
};

} // namespace rocov

#endif // ROCOV_PASS_GPUTARGET_H
