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
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/MathExtras.h"
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
  Value *sumOfDifferent(Instruction *End, Value *Count);
  Value *sumByVotes(Instruction *End, Value *Count);
  void add(ArrayRef<Value *> Totals, Value *Offset);
  void addByLane(ArrayRef<Value *> Wide, Value *Offset, Type *Width);
  void addByRank(Instruction *End, ArrayRef<Value *> Totals, Value *Offset);
  void addAt(Instruction *Adding, Value *Offset, Value *Word, Value *Value);

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
  auto *Always = dyn_cast<ConstantInt>(Bit);
  if (Always && Always->isOne())
    return Active;
  Value *Mask = Target.ballot(B, Bit, Lanes);
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
/// as often in all lanes.
Value *Flush::sum(Value *Count) {
  Type *Int64 = B.getInt64Ty();
  Value *Any = Target.anyLane(B, Count, Lanes);
  Value *Differs = Target.ballot(B, B.CreateICmpNE(Count, Any), Lanes);
  Value *Equal = B.CreateMul(B.CreateZExt(Any, Int64),
                             B.CreateZExt(Active, Int64));
  BasicBlock *Head = B.GetInsertBlock();
  Instruction *Then = SplitBlockAndInsertIfThen(
      B.CreateICmpNE(Differs, B.getInt64(0)), Before->getIterator(),
      /*Unreachable=*/false);
  Value *Sum = sumOfDifferent(Then, Count);
  B.SetInsertPoint(Before->getParent(), Before->getParent()->begin());
  PHINode *Total = B.CreatePHI(Int64, 2);
  Total->addIncoming(Equal, Head);
  Total->addIncoming(Sum, Then->getParent());
  B.SetInsertPoint(Before);
  return Total;
}

/// The sum (i64) of numbers that differ, before \p End: by the target's way if it
/// has one that works here and the sum has 32 bits, else by votes.
Value *Flush::sumOfDifferent(Instruction *End, Value *Count) {
  Type *Int32 = B.getInt32Ty(), *Int64 = B.getInt64Ty();
  B.SetInsertPoint(End);
  Value *CanSum = Target.canSum(B, Lanes, *End->getFunction());
  if (!CanSum)
    return sumByVotes(End, Count);
  // The sum of at most 64 of them fits.
  constexpr unsigned MaxBits = 26;
  Value *Large = B.CreateICmpNE(B.CreateLShr(Count, MaxBits),
                                ConstantInt::get(Count->getType(), 0));
  Value *IsSmall = B.CreateICmpEQ(Target.ballot(B, Large, Lanes), B.getInt64(0));
  Instruction *Quick, *Slow;
  SplitBlockAndInsertIfThenElse(B.CreateAnd(CanSum, IsSmall), End, &Quick,
                                &Slow);
  B.SetInsertPoint(Quick);
  Value *Small = Target.sum(B, B.CreateZExtOrTrunc(Count, Int32), Lanes);
  Value *Few = B.CreateZExt(Small, Int64);
  Value *Votes = sumByVotes(Slow, Count);
  B.SetInsertPoint(End->getParent(), End->getParent()->begin());
  PHINode *Sum = B.CreatePHI(Int64, 2);
  Sum->addIncoming(Few, Quick->getParent());
  Sum->addIncoming(Votes, Slow->getParent());
  return Sum;
}

/// The sum (i64) of any numbers, before \p End: the lanes vote on each bit.
Value *Flush::sumByVotes(Instruction *End, Value *Count) {
  Type *Int64 = B.getInt64Ty();
  BasicBlock *Head = End->getParent();
  BasicBlock *Tail = SplitBlock(Head, End);
  BasicBlock *Body =
      BasicBlock::Create(Head->getContext(), "", Head->getParent(), Tail);
  Head->getTerminator()->setSuccessor(0, Body);
  B.SetInsertPoint(Body);
  PHINode *Rest = B.CreatePHI(Count->getType(), 2);
  PHINode *Sum = B.CreatePHI(Int64, 2);
  PHINode *Bit = B.CreatePHI(Int64, 2);
  Value *Votes = Target.ballot(B, B.CreateTrunc(Rest, B.getInt1Ty()), Lanes);
  Value *Ones = B.CreateUnaryIntrinsic(Intrinsic::ctpop, Votes);
  Value *NewSum = B.CreateAdd(Sum, B.CreateShl(Ones, Bit));
  Value *NewRest = B.CreateLShr(Rest, 1);
  Value *NewBit = B.CreateAdd(Bit, B.getInt64(1));
  Value *More = Target.ballot(
      B, B.CreateICmpNE(NewRest, ConstantInt::get(NewRest->getType(), 0)), Lanes);
  B.CreateCondBr(B.CreateICmpNE(More, B.getInt64(0)), Body, Tail);
  Rest->addIncoming(Count, Head);
  Rest->addIncoming(NewRest, Body);
  Sum->addIncoming(B.getInt64(0), Head);
  Sum->addIncoming(NewSum, Body);
  Bit->addIncoming(B.getInt64(0), Head);
  Bit->addIncoming(NewBit, Body);
  return NewSum;
}

/// Adds \p Totals to the words from byte \p Offset (i32) of the area on; null is
/// 0. Lane i adds word i.
void Flush::add(ArrayRef<Value *> Totals, Value *Offset) {
  Type *Int32 = B.getInt32Ty(), *Int64 = B.getInt64Ty();
  bool Narrow = all_of(
      Totals, [&](Value *It) { return !It || It->getType() == Int32; });
  Type *Width = Narrow ? Int32 : Int64;
  SmallVector<Value *, 16> Wide;
  for (Value *Total : Totals)
    Wide.push_back(Total ? B.CreateZExt(Total, Width) : nullptr);

  // Any wave has 32 lanes.
  constexpr unsigned Most = 32;
  for (ArrayRef<Value *> Left = Wide; !Left.empty();
       Left = Left.drop_front(std::min<size_t>(Most, Left.size()))) {
    unsigned First = Wide.size() - Left.size();
    B.SetInsertPoint(Before);
    addByLane(Left.take_front(Most),
              B.CreateAdd(Offset, B.getInt32(First * 8)), Width);
  }
}

/// Adds at most 32 words of type \p Width.
void Flush::addByLane(ArrayRef<Value *> Wide, Value *Offset, Type *Width) {
  if (all_of(Wide, [](Value *It) { return !It; }))
    return;
  if (!Target.hasWriteLane())
    return addByRank(Before, Wide, Offset);
  Type *Int32 = B.getInt32Ty();
  unsigned Words = Wide.size();
  // The lanes that have a word are active, unless some have left or the block is
  // smaller. writeLane() must not reach other lanes: callers may have values of
  // theirs in the register.
  Value *Wanted = B.getInt32(maskTrailingOnes<uint32_t>(Words));
  Value *There = B.CreateAnd(B.CreateTrunc(Lanes, Int32), Wanted);
  Value *AreThere = B.CreateICmpEQ(There, Wanted);
  MDBuilder Weights(Before->getContext());
  Instruction *Usual =
      SplitBlockAndInsertIfThen(AreThere, Before->getIterator(),
                                /*Unreachable=*/false,
                                Weights.createLikelyBranchWeights());
  B.SetInsertPoint(Usual);
  Value *Mine = ConstantInt::get(Width, 0);
  for (unsigned I = 0; I != Words; ++I)
    if (Wide[I])
      Mine = Target.writeLane(B, Mine, I, Wide[I]);
  Value *Lane = Target.lane(B);
  Instruction *Add = SplitBlockAndInsertIfThen(
      B.CreateICmpULT(Lane, B.getInt32(Words)), Usual->getIterator(),
      /*Unreachable=*/false);
  addAt(Add, Offset, Lane, Mine);
  B.SetInsertPoint(Before);
  Instruction *Rare = SplitBlockAndInsertIfThen(
      B.CreateNot(AreThere), Before->getIterator(), /*Unreachable=*/false,
      Weights.createUnlikelyBranchWeights());
  addByRank(Rare, Wide, Offset);
}

/// Adds \p Value to word \p Word (i32).
void Flush::addAt(Instruction *Adding, Value *Offset, Value *Word,
                  Value *Value) {
  B.SetInsertPoint(Adding);
  llvm::Value *Byte = B.CreateAdd(Offset, B.CreateShl(Word, 3));
  llvm::Value *Address = B.CreateGEP(B.getInt8Ty(), Copies.area(),
                                     B.CreateZExt(Byte, B.getInt64Ty()));
  auto Scope = Adding->getContext().getOrInsertSyncScopeID(Target.deviceScope());
  B.CreateAtomicRMW(AtomicRMWInst::Add, Address,
                    B.CreateZExt(Value, B.getInt64Ty()), Align(8),
                    AtomicOrdering::Monotonic, Scope);
}

/// Adds words with the active lanes, whichever they are, before \p End. If there
/// are fewer of them than words, they go on.
void Flush::addByRank(Instruction *End, ArrayRef<Value *> Totals,
                      Value *Offset) {
  B.SetInsertPoint(End);
  Type *Int32 = B.getInt32Ty();
  Value *Lane = Target.lanesBelow(B, Lanes);
  BasicBlock *Head = End->getParent();
  BasicBlock *Done = SplitBlock(Head, End);
  Function *F = Head->getParent();
  BasicBlock *Turn = BasicBlock::Create(F->getContext(), "", F, Done);
  BasicBlock *Next = BasicBlock::Create(F->getContext(), "", F, Done);
  Head->getTerminator()->setSuccessor(0, Turn);

  B.SetInsertPoint(Turn);
  PHINode *First = B.CreatePHI(Int32, 2);
  Value *Word = B.CreateAdd(First, Lane);
  Value *Mine = nullptr;
  for (unsigned I = 0; I != Totals.size(); ++I) {
    if (!Totals[I])
      continue;
    if (!Mine)
      Mine = ConstantInt::get(Totals[I]->getType(), 0);
    Mine = B.CreateSelect(B.CreateICmpEQ(Word, B.getInt32(I)), Totals[I], Mine);
  }
  Value *IsMine = B.CreateICmpNE(Mine, ConstantInt::get(Mine->getType(), 0));
  Instruction *ToNext = B.CreateBr(Next);
  Instruction *Adding = SplitBlockAndInsertIfThen(
      IsMine, ToNext->getIterator(), /*Unreachable=*/false);
  addAt(Adding, Offset, Word, Mine);

  B.SetInsertPoint(Next);
  Value *NextFirst = B.CreateAdd(First, Active);
  Value *More = B.CreateICmpULT(NextFirst, B.getInt32(Totals.size()));
  B.CreateCondBr(More, Turn, Done);
  First->addIncoming(B.getInt32(0), Head);
  First->addIncoming(NextFirst, Next);
}

void Flush::run(ArrayRef<LaneCount> Counts, unsigned Words, uint64_t Offset) {
  Lanes = Target.active(B);
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
  Value *Copy =
      Target.unit(B, *Before->getFunction(), Log2_64(Copies.copies()));
  // An area has less than 4 GiB.
  Value *Start = B.CreateMul(Copy, B.getInt32(Copies.stride()));
  add(Totals, B.CreateAdd(Start, B.getInt32(Offset)));
}

} // namespace

void markCounts(ArrayRef<Counter> Words, Instruction *Before,
                   ArrayRef<LaneCount> Counts) {
  IRBuilder<> B(Before);
  Type *Int64 = B.getInt64Ty();
  for (const LaneCount &Lane : Counts)
    for (auto [Word, Factor] : Lane.Words) {
      Value *Step = Lane.Count;
      if (Factor != 1)
        Step = B.CreateMul(B.CreateZExt(Step, Int64), B.getInt64(Factor));
      markUpdate(B, Words[Word], Step);
    }
}

void addToCopy(const GpuTarget &Target, const CopiesTable &Copies,
               uint64_t Offset, unsigned Words, Instruction *Before,
               ArrayRef<LaneCount> Counts) {
  Flush(Target, Copies, Before).run(Counts, Words, Offset);
}

} // namespace rocov
