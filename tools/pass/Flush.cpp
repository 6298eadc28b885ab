//===- Flush.cpp - Bringing counts to memory ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Flush.h"

#include "CopiesTable.h"
#include "CounterUpdates.h"
#include "GpuTarget.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace rocov {

namespace {

class Flush {
public:
  Flush(const GpuTarget &Target, const CopiesTable &Copies, Instruction *Before)
      : Target(Target), Copies(Copies), Before(Before), B(Before) {}

  void run(ArrayRef<LaneCount> Counts, unsigned Words, uint64_t Offset);

private:
  Value *ones(Value *Bit);
  void accumulate(Value *&Sum, Value *Part, uint64_t Factor);
  Value *sum(Value *Count);
  void add(ArrayRef<Value *> Totals, Value *Place);

  const GpuTarget &Target;
  const CopiesTable &Copies;
  Instruction *Before;
  IRBuilder<> B;
  /// The active lanes (i64), and their number (i32).
  Value *Lanes = nullptr;
  Value *Active = nullptr;
};

/// The number (i32) of active lanes in which \p Bit holds.
Value *Flush::ones(Value *Bit) {
  Value *Mask = Target.ballot(B, Bit);
  return B.CreateTrunc(B.CreateUnaryIntrinsic(Intrinsic::ctpop, Mask),
                       B.getInt32Ty());
}

/// Adds \p Factor times \p Part to \p Sum, which is null for 0. Numbers of lanes
/// stay narrow, because they fit whatever their sum.
void Flush::accumulate(Value *&Sum, Value *Part, uint64_t Factor) {
  bool Narrow = Factor == 1 && (!Sum || Sum->getType() == Part->getType());
  if (!Narrow) {
    Part = B.CreateMul(B.CreateZExt(Part, B.getInt64Ty()), B.getInt64(Factor));
    Sum = Sum ? B.CreateZExt(Sum, B.getInt64Ty()) : nullptr;
  }
  Sum = Sum ? B.CreateAdd(Sum, Part) : Part;
}

/// The sum (i64) of numbers that may differ. Most often they do not: a loop runs
/// as often in all lanes. Otherwise the lanes vote on each bit.
Value *Flush::sum(Value *Count) {
  Type *Int64 = B.getInt64Ty();
  Value *Any = Target.anyLane(B, Count, Lanes);
  Value *Differs = Target.ballot(B, B.CreateICmpNE(Count, Any));
  Value *Equal = B.CreateMul(B.CreateZExt(Any, Int64),
                             B.CreateZExt(Active, Int64));
  Instruction *Then = SplitBlockAndInsertIfThen(
      B.CreateICmpNE(Differs, B.getInt64(0)), Before->getIterator(),
      /*Unreachable=*/false);
  BasicBlock *Head = cast<Instruction>(Differs)->getParent();
  BasicBlock *Body = Then->getParent();
  BasicBlock *Tail = Before->getParent();

  // Body: one turn for each bit, from the lowest.
  Then->eraseFromParent();
  B.SetInsertPoint(Body);
  PHINode *Rest = B.CreatePHI(Count->getType(), 2);
  PHINode *Sum = B.CreatePHI(Int64, 2);
  PHINode *Bit = B.CreatePHI(Int64, 2);
  Value *Votes = Target.ballot(B, B.CreateTrunc(Rest, B.getInt1Ty()));
  Value *Ones = B.CreateUnaryIntrinsic(Intrinsic::ctpop, Votes);
  Value *NewSum = B.CreateAdd(Sum, B.CreateShl(Ones, Bit));
  Value *NewRest = B.CreateLShr(Rest, 1);
  Value *NewBit = B.CreateAdd(Bit, B.getInt64(1));
  Value *More = Target.ballot(
      B, B.CreateICmpNE(NewRest, ConstantInt::get(NewRest->getType(), 0)));
  B.CreateCondBr(B.CreateICmpNE(More, B.getInt64(0)), Body, Tail);
  Rest->addIncoming(Count, Head);
  Rest->addIncoming(NewRest, Body);
  Sum->addIncoming(B.getInt64(0), Head);
  Sum->addIncoming(NewSum, Body);
  Bit->addIncoming(B.getInt64(0), Head);
  Bit->addIncoming(NewBit, Body);

  B.SetInsertPoint(Tail, Tail->begin());
  PHINode *Total = B.CreatePHI(Int64, 2);
  Total->addIncoming(Equal, Head);
  Total->addIncoming(NewSum, Body);
  B.SetInsertPoint(Before);
  return Total;
}

/// Adds \p Totals to the words from \p Place on; null is 0. Lane i of the active ones adds
/// word i. If there are fewer lanes than words, they go on.
void Flush::add(ArrayRef<Value *> Totals, Value *Place) {
  Type *Int32 = B.getInt32Ty(), *Int64 = B.getInt64Ty();
  bool Narrow = all_of(
      Totals, [&](Value *It) { return !It || It->getType() == Int32; });
  Type *Width = Narrow ? Int32 : Int64;
  Value *Lane = Target.lanesBelow(B, Lanes);
  SmallVector<Value *, 16> Wide;
  for (Value *Total : Totals)
    Wide.push_back(Total ? B.CreateZExt(Total, Width) : nullptr);

  BasicBlock *Head = Before->getParent();
  BasicBlock *Done = SplitBlock(Head, Before);
  Function *F = Head->getParent();
  BasicBlock *Turn = BasicBlock::Create(F->getContext(), "", F, Done);
  BasicBlock *Adding = BasicBlock::Create(F->getContext(), "", F, Done);
  BasicBlock *Next = BasicBlock::Create(F->getContext(), "", F, Done);
  Head->getTerminator()->setSuccessor(0, Turn);

  B.SetInsertPoint(Turn);
  PHINode *First = B.CreatePHI(Int32, 2);
  Value *Word = B.CreateAdd(First, Lane);
  Value *Mine = ConstantInt::get(Width, 0);
  for (unsigned I = 0; I != Wide.size(); ++I)
    if (Wide[I])
      Mine = B.CreateSelect(B.CreateICmpEQ(Word, B.getInt32(I)), Wide[I], Mine);
  B.CreateCondBr(B.CreateICmpNE(Mine, ConstantInt::get(Width, 0)), Adding, Next);

  B.SetInsertPoint(Adding);
  Value *Address = B.CreateGEP(Int64, Place, B.CreateZExt(Word, Int64));
  auto Scope =
      F->getContext().getOrInsertSyncScopeID(Target.deviceScope());
  B.CreateAtomicRMW(AtomicRMWInst::Add, Address, B.CreateZExt(Mine, Int64),
                    Align(8), AtomicOrdering::Monotonic, Scope);
  B.CreateBr(Next);

  B.SetInsertPoint(Next);
  Value *NextFirst = B.CreateAdd(First, Active);
  Value *More = B.CreateICmpULT(NextFirst, B.getInt32(Wide.size()));
  B.CreateCondBr(More, Turn, Done);
  First->addIncoming(B.getInt32(0), Head);
  First->addIncoming(NextFirst, Next);
}

void Flush::run(ArrayRef<LaneCount> Counts, unsigned Words, uint64_t Offset) {
  Lanes = Target.ballot(B, B.getTrue());
  Active = B.CreateTrunc(B.CreateUnaryIntrinsic(Intrinsic::ctpop, Lanes),
                         B.getInt32Ty());
  // Bits are summed one by one. Numbers of a word are added first, because their
  // sum over the lanes costs more.
  SmallVector<Value *, 16> Totals(Words, nullptr), Numbers(Words, nullptr);
  for (const LaneCount &Lane : Counts) {
    bool IsBit = Lane.Count->getType()->isIntegerTy(1);
    Value *Part = IsBit ? ones(Lane.Count) : Lane.Count;
    for (auto [Word, Factor] : Lane.Words)
      accumulate(IsBit ? Totals[Word] : Numbers[Word], Part, Factor);
  }
  SmallDenseMap<Value *, Value *> Sums;
  for (unsigned Word = 0; Word != Words; ++Word) {
    if (Value *Number = Numbers[Word]) {
      Value *&Sum = Sums[Number];
      if (!Sum)
        Sum = sum(Number);
      accumulate(Totals[Word], Sum, 1);
    }
  }
  Value *Unit = Target.unit(B, *Before->getFunction());
  Value *Copy = B.CreateAnd(Unit, B.getInt32(Copies.copies() - 1));
  Value *Start = B.CreateMul(B.CreateZExt(Copy, B.getInt64Ty()),
                             B.getInt64(Copies.stride()));
  Value *Place = B.CreateGEP(B.getInt8Ty(), Copies.area(),
                             B.CreateAdd(Start, B.getInt64(Offset)));
  add(Totals, Place);
}

} // namespace

void markCounts(ArrayRef<Counter> Words, Instruction *Before,
                   ArrayRef<LaneCount> Counts) {
  IRBuilder<> B(Before);
  Type *Int64 = B.getInt64Ty();
  SmallVector<Value *, 16> Sums(Words.size(), nullptr);
  for (const LaneCount &Lane : Counts)
    for (auto [Word, Factor] : Lane.Words) {
      Value *Part = B.CreateZExt(Lane.Count, Int64);
      Part = B.CreateMul(Part, B.getInt64(Factor));
      Sums[Word] = Sums[Word] ? B.CreateAdd(Sums[Word], Part) : Part;
    }
  for (auto [Word, Sum] : zip(Words, Sums)) {
    if (Sum)
      markUpdate(B, Word, Sum);
  }
}

void addToCopy(const GpuTarget &Target, const CopiesTable &Copies,
               uint64_t Offset, unsigned Words, Instruction *Before,
               ArrayRef<LaneCount> Counts) {
  Flush(Target, Copies, Before).run(Counts, Words, Offset);
}

} // namespace rocov
