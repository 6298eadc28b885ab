//===- Flush.cpp - Bringing counts to memory ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Flush.h"

#include "CopiesTable.h"
#include "CounterUpdates.h"
#include "GpuTarget.h"
#include "Votes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <optional>
#include <utility>

using namespace llvm;

namespace rocov {

namespace {

/// Bits that are summed four at a time: spread over the bytes of a word, whose
/// sum over a warp of 32 lanes is one instruction.
class ByteSums {
public:
  /// Adds a bit (i1) that counts for \p Word.
  void add(unsigned Word, Value *Bit);

  bool has(unsigned Word) const { return Fields.contains(Word); }

  /// Sums the bits. Returns those that are too many: they are not in it.
  SmallVector<std::pair<unsigned, Value *>, 4>
  sum(IRBuilderBase &B, const GpuTarget &Target, Value *Lanes);

  /// The sum (i32) for word \p First + \p Word (i32), which is less than \p Count.
  /// Any number for words that it does not have.
  Value *of(IRBuilderBase &B, const GpuTarget &Target, Value *Word,
            unsigned First, unsigned Count) const;

private:
  static constexpr unsigned PerSum = 4;
  /// The bits of the number of a byte.
  static constexpr unsigned FieldWidth = 5;
  static constexpr unsigned MaxSums = (1 << FieldWidth) / PerSum;

  SmallVector<std::pair<unsigned, Value *>, 16> Bits;
  /// The sums, each of four bytes.
  SmallVector<Value *, 8> Sums;
  /// For each word the number of its byte.
  SmallDenseMap<unsigned, unsigned> Fields;
};

/// \p Shared in registers for values that all lanes share, as no pass looks into.
Value *inScalars(IRBuilderBase &B, Value *Shared) {
  auto *Type = FunctionType::get(Shared->getType(), {Shared->getType()}, false);
  return B.CreateCall(InlineAsm::get(Type, "", "=s,0", /*hasSideEffects=*/false),
                      {Shared});
}

/// A way that few waves take: from block From over block Last back to where the
/// others go on. It adds all words, so these waves have none left there. Both ways
/// of a usual if would cost five instructions more, because LLVM's StructurizeCFG
/// makes two conditions of it.
struct Detour {
  BasicBlock *From;
  BasicBlock *Last;
};

class Flush {
public:
  Flush(const GpuTarget &Target, const CopiesTable &Copies,
        const CountedFunction &Counted, Instruction *Before)
      : Target(Target), Copies(Copies), Uniform(Counted.Uniform),
        Paired(Counted.Paired), Before(Before), B(Before),
        IsLast(isa<ReturnInst>(Before) &&
               Before->getFunction()->getCallingConv() ==
                   CallingConv::AMDGPU_KERNEL) {}

  void run(ArrayRef<LaneCount> Counts, unsigned Words, uint64_t Offset);

private:
  void findFollowing(ArrayRef<LaneCount> Counts, ArrayRef<unsigned> Parts);
  /// Returns whether all lanes have this value.
  bool isSame(Value *It) const {
    return Uniform.contains(It) || Target.isVote(It) || Target.isOfAnyLane(It);
  }
  Value *ones(Value *Bit);
  void accumulate(Value *&Sum, Value *Part, uint64_t Factor);
  Value *sum(Value *Count);
  Value *sumByVotes(Instruction *End, Value *Count);
  void bring(Value *Place);
  Value *areSmall();
  void addSmall(Value *Place, std::optional<Detour> Done);
  void addAny(Value *Place);
  Detour detour(Value *IsRare, function_ref<void(Instruction *)> Fill);
  void add(ArrayRef<Value *> Totals, Value *Offset, std::optional<Detour> Done);
  void addByLane(ArrayRef<Value *> Wide, ArrayRef<Value *> Uniforms,
                 unsigned First, Value *Offset, Type *Width,
                 std::optional<Detour> Done);
  void addWithLane(ArrayRef<Value *> Wide, ArrayRef<Value *> Uniforms,
                   Value *Offset, Type *Width, Detour Done);
  Value *byLane(ArrayRef<Value *> Wide, Type *Width);
  void addByRank(Instruction *End, ArrayRef<Value *> Totals, unsigned First,
                 Value *Offset, Type *Width);
  Value *totalOf(Value *Word, ArrayRef<Value *> Totals, unsigned First,
                 Type *Width);
  Value *addressOf(Value *Area, Value *Offset, Value *Word);
  void addAt(Instruction *Adding, Value *Address, Value *Value);

  const GpuTarget &Target;
  const CopiesTable &Copies;
  const SmallPtrSetImpl<Value *> &Uniform;
  /// The numbers of the words that belong together.
  unsigned Paired;
  Instruction *Before;
  IRBuilder<> B;
  /// Set if only lanes that will never run again are not active. Elsewhere, others may
  /// have values in any register, so writeLane() must not reach them.
  bool IsLast;
  /// The active lanes (i64), and their number (i32).
  Value *Lanes = nullptr;
  Value *Active = nullptr;
  ByteSums Bytes;
  /// For each word the number (i32 or i64) of lanes in which its bits hold. Null is
  /// 0.
  SmallVector<Value *, 16> Totals;
  /// The words of runs by all lanes that follow from another word: if the total of
  /// that is the size of a wave, it is theirs, too. Else it is 0.
  SmallSet<unsigned, 16> Following;
  /// For each word the numbers (i32 or i64) of each lane that count for it.
  SmallVector<SmallVector<Value *, 1>, 16> Numbers;
};

/// The value (i32) of which \p Bit (i1) is a bit, and the bit's number. Null if
/// there is none.
std::pair<Value *, unsigned> sourceOf(Value *Bit) {
  Value *Word = nullptr;
  unsigned Number = 0;
  if (auto *Test = dyn_cast<ICmpInst>(Bit)) {
    auto *Zero = dyn_cast<ConstantInt>(Test->getOperand(1));
    auto *And = dyn_cast<BinaryOperator>(Test->getOperand(0));
    if (Test->getPredicate() != ICmpInst::ICMP_NE || !Zero || !Zero->isZero() ||
        !And || And->getOpcode() != Instruction::And)
      return {};
    auto *Mask = dyn_cast<ConstantInt>(And->getOperand(1));
    if (!Mask || !Mask->getValue().isPowerOf2())
      return {};
    Word = And->getOperand(0);
    Number = Mask->getValue().logBase2();
  } else if (auto *Low = dyn_cast<TruncInst>(Bit)) {
    Word = Low->getOperand(0);
    auto *Shift = dyn_cast<BinaryOperator>(Word);
    auto *By = Shift && Shift->getOpcode() == Instruction::LShr
                   ? dyn_cast<ConstantInt>(Shift->getOperand(1))
                   : nullptr;
    if (By) {
      Word = Shift->getOperand(0);
      Number = By->getZExtValue();
    }
  }
  if (!Word || !Word->getType()->isIntegerTy(32))
    return {};
  return {Word, Number};
}

void ByteSums::add(unsigned Word, Value *Bit) { Bits.push_back({Word, Bit}); }

SmallVector<std::pair<unsigned, Value *>, 4>
ByteSums::sum(IRBuilderBase &B, const GpuTarget &Target, Value *Lanes) {
  // Four bits of a value, from bit Shift on: one multiplication spreads them.
  struct Nibble {
    Value *Word;
    unsigned Shift;
    bool operator==(const Nibble &Other) const {
      return Word == Other.Word && Shift == Other.Shift;
    }
  };
  SmallVector<Nibble, MaxSums> Nibbles;
  SmallVector<std::pair<unsigned, Value *>, 4> Left;
  auto Put = [&](unsigned Word, Value *Bit, Value *Source, unsigned Number) {
    Nibble Wanted = {Source, Number / PerSum * PerSum};
    auto *At = find(Nibbles, Wanted);
    unsigned Index = At - Nibbles.begin();
    if (At == Nibbles.end()) {
      if (Index == MaxSums)
        return Left.push_back({Word, Bit});
      Nibbles.push_back(Wanted);
    }
    Fields[Word] = Index * PerSum + Number % PerSum;
  };
  SmallVector<std::pair<unsigned, Value *>, 16> Loose;
  for (auto [Word, Bit] : Bits) {
    auto [Source, Number] = sourceOf(Bit);
    if (Source)
      Put(Word, Bit, Source, Number);
    else
      Loose.push_back({Word, Bit});
  }
  // The bits of no value share one.
  for (ArrayRef<std::pair<unsigned, Value *>> Rest = Loose; !Rest.empty();
       Rest = Rest.drop_front(std::min<size_t>(PerSum, Rest.size()))) {
    auto Four = Rest.take_front(PerSum);
    Value *Packed = B.getInt32(0);
    for (unsigned I = 0; I != Four.size(); ++I) {
      Value *Wide = B.CreateZExt(Four[I].second, B.getInt32Ty());
      Packed = B.CreateOr(Packed, B.CreateShl(Wide, I));
    }
    for (unsigned I = 0; I != Four.size(); ++I)
      Put(Four[I].first, Four[I].second, Packed, I);
  }
  // Bit i of four goes to byte i: the products do not overlap.
  constexpr uint32_t Spread = 1 | 1 << 7 | 1 << 14 | 1 << 21;
  for (auto [Word, Shift] : Nibbles) {
    Value *Four = B.CreateAnd(B.CreateLShr(Word, Shift), 0xf);
    Value *Apart = B.CreateAnd(B.CreateMul(Four, B.getInt32(Spread)),
                               B.getInt32(0x01010101));
    Sums.append(Target.sums(B, Apart, Lanes));
  }
  return Left;
}

Value *ByteSums::of(IRBuilderBase &B, const GpuTarget &Target, Value *Word,
                    unsigned First, unsigned Count) const {
  // The numbers of the bytes, one after the other. Four bits do for two sums.
  bool AreFew = Sums.size() <= 2;
  unsigned Width = AreFew ? 4 : FieldWidth, PerTable = 64 / Width;
  Value *Field = nullptr;
  for (unsigned From = 0; From < Count; From += PerTable) {
    uint64_t Table = 0;
    for (unsigned I = From; I != std::min(From + PerTable, Count); ++I)
      if (auto It = Fields.find(First + I); It != Fields.end())
        Table |= uint64_t(It->second) << (I - From) * Width;
    Value *Shift = B.CreateMul(B.CreateSub(Word, B.getInt32(From)),
                               B.getInt32(Width));
    Value *Entry = B.CreateTrunc(
        B.CreateLShr(B.getInt64(Table), B.CreateZExt(Shift, B.getInt64Ty())),
        B.getInt32Ty());
    Field = Field ? B.CreateSelect(B.CreateICmpULT(Word, B.getInt32(From)),
                                   Field, Entry)
                  : Entry;
  }
  if (AreFew)
    return B.CreateAnd(Target.byteOf(B, Sums.front(), Sums.back(), Field), 0xff);
  Value *Sum = Sums.front();
  for (unsigned I = 1; I != Sums.size(); ++I) {
    Value *IsIt = B.CreateICmpEQ(
        B.CreateAnd(Field, (MaxSums - 1) * PerSum), B.getInt32(I * PerSum));
    Sum = B.CreateSelect(IsIt, Sums[I], Sum);
  }
  Value *Shift = B.CreateShl(B.CreateAnd(Field, PerSum - 1), 3);
  return B.CreateAnd(B.CreateLShr(Sum, Shift), 0xff);
}

/// The number (i32) of active lanes in which \p Bit holds.
Value *Flush::ones(Value *Bit) {
  auto *Always = dyn_cast<ConstantInt>(Bit);
  if (Always && Always->isOne())
    return Active;
  if (isSame(Bit))
    return B.CreateSelect(Bit, Active, B.getInt32(0));
  Value *Mask = Target.ballot(B, Bit, Lanes);
  if (Target.lanesMeet())
    markVote(Mask);
  return B.CreateTrunc(B.CreateUnaryIntrinsic(Intrinsic::ctpop, Mask),
                       B.getInt32Ty());
}

/// Adds \p Factor times \p Part to \p Sum, which is null for 0. Sums of narrow
/// parts stay narrow: they fit.
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
  Value *Sum = sumByVotes(Then, Count);
  B.SetInsertPoint(Before->getParent(), Before->getParent()->begin());
  PHINode *Total = B.CreatePHI(Int64, 2);
  Total->addIncoming(Equal, Head);
  Total->addIncoming(Sum, Then->getParent());
  B.SetInsertPoint(Before);
  return Total;
}

/// The sum (i64) of numbers that differ, before \p End: the lanes vote on each bit.
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

/// The factors of bits whose sums have 32 bits.
constexpr uint64_t MaxNarrow = 1 << 16;

/// Finds the words that follow from others. \p Parts has the number of counts for
/// each word.
void Flush::findFollowing(ArrayRef<LaneCount> Counts, ArrayRef<unsigned> Parts) {
  if (!Paired || Paired > 32 || !Target.hasWriteLane())
    return;
  // The bit of each word that has no other count.
  SmallDenseMap<unsigned, Value *> Bits;
  for (const LaneCount &Lane : Counts)
    for (auto [Word, Factor] : Lane.Words)
      if (Factor == 1 && Parts[Word] == 1 && Lane.Count->getType()->isIntegerTy(1))
        Bits[Word] = Lane.Count;
  unsigned Others = 0;
  for (unsigned Word = 0; Word != Paired; ++Word) {
    Value *Bit = Bits.lookup(Word), *All = Bits.lookup(Paired + Word);
    if (Bit && All && Target.isVote(All) && Target.votes(All) == Bit)
      Following.insert(Paired + Word);
    else if (!Parts[Paired + Word])
      ++Others;
  }
  // Words that nothing counts here need an instruction, too.
  if (Following.size() < Others + 2)
    Following.clear();
}

/// Adds \p Totals to the words from byte \p Offset (i32) of the area on; null is
/// 0. Lane i adds word i. All lanes are active in waves that have not taken the way
/// \p Done.
void Flush::add(ArrayRef<Value *> Totals, Value *Offset,
                std::optional<Detour> Done) {
  Type *Int32 = B.getInt32Ty(), *Int64 = B.getInt64Ty();
  bool Narrow = all_of(
      Totals, [&](Value *It) { return !It || It->getType() == Int32; });
  Type *Width = Narrow ? Int32 : Int64;
  SmallVector<Value *, 16> Wide;
  for (Value *Total : Totals)
    Wide.push_back(Total ? B.CreateZExt(Total, Width) : nullptr);

  // Any wave has 32 lanes.
  constexpr unsigned Most = 32;
  unsigned Added = 0;
  if (!Following.empty()) {
    ArrayRef<Value *> All = Wide;
    B.SetInsertPoint(Before);
    addByLane(All.take_front(Paired), All.slice(Paired, Paired), 0, Offset, Width,
              Done);
    Added = 2 * Paired;
  }
  for (ArrayRef<Value *> Left = ArrayRef<Value *>(Wide).drop_front(Added);
       !Left.empty();
       Left = Left.drop_front(std::min<size_t>(Most, Left.size()))) {
    unsigned First = Wide.size() - Left.size();
    B.SetInsertPoint(Before);
    addByLane(Left.take_front(std::min<size_t>(Most, Left.size())), {}, First,
              B.CreateAdd(Offset, B.getInt32(First * 8)), Width, Done);
  }
}

/// Lets waves for which \p IsRare (i1) holds take a way that \p Fill fills before the
/// instruction that it gets.
Detour Flush::detour(Value *IsRare, function_ref<void(Instruction *)> Fill) {
  BasicBlock *From = Before->getParent();
  Instruction *End = SplitBlockAndInsertIfThen(
      IsRare, Before->getIterator(), /*Unreachable=*/false,
      MDBuilder(Before->getContext()).createUnlikelyBranchWeights());
  Fill(End);
  return {From, End->getParent()};
}

/// Adds at most 32 words of type \p Width, from word \p First on, and as many words
/// behind them, of which some follow from the first ones, or none.
void Flush::addByLane(ArrayRef<Value *> Wide, ArrayRef<Value *> Uniforms,
                      unsigned First, Value *Offset, Type *Width,
                      std::optional<Detour> Done) {
  auto HasNone = [&](unsigned I) { return !Wide[I] && !Bytes.has(First + I); };
  if (all_of(seq<unsigned>(0, Wide.size()), HasNone))
    return;
  // On an H200 the short way of full warps costs more than it saves.
  if (!Target.hasWriteLane())
    return addByRank(Before, Wide, First, Offset, Width);
  if (!Done) {
    // The lanes that have a word are active, unless some have left or the block is
    // smaller.
    Value *Wanted = B.getInt32(maskTrailingOnes<uint32_t>(Wide.size()));
    Value *There = B.CreateAnd(B.CreateTrunc(Lanes, B.getInt32Ty()), Wanted);
    Done = detour(B.CreateICmpNE(There, Wanted), [&](Instruction *End) {
      addByRank(End, Wide, First, Offset, Width);
      // Words that follow are 0 if a lane is not there.
      if (any_of(Uniforms, [](Value *It) { return It; }))
        addByRank(End, Uniforms, First + Wide.size(),
                  IRBuilder<>(End).CreateAdd(Offset, B.getInt32(Wide.size() * 8)),
                  Width);
    });
  }
  addWithLane(Wide, Uniforms, Offset, Width, *Done);
}

/// Adds words in waves that have not taken the way \p Done. There the lanes that have a
/// word are active.
void Flush::addWithLane(ArrayRef<Value *> Wide, ArrayRef<Value *> Uniforms,
                        Value *Offset, Type *Width, Detour Done) {
  BasicBlock *Meet = Done.Last->getSingleSuccessor();
  B.SetInsertPoint(Meet, Meet->begin());
  PHINode *Count = B.CreatePHI(B.getInt32Ty(), 2);
  Count->addIncoming(B.getInt32(Wide.size()), Done.From);
  Count->addIncoming(B.getInt32(0), Done.Last);
  B.SetInsertPoint(Before);
  Instruction *End = Before;
  if (!IsLast)
    End = SplitBlockAndInsertIfThen(B.CreateICmpNE(Count, B.getInt32(0)),
                                    Before->getIterator(), /*Unreachable=*/false);
  B.SetInsertPoint(End);
  Value *Lane = Target.lane(B);
  Value *Mine = byLane(Wide, Width);
  Value *OfAll = nullptr;
  if (!Uniforms.empty()) {
    Value *Size = B.CreateZExt(Target.waveSize(B), Width);
    Value *Zero = ConstantInt::get(Width, 0);
    OfAll = B.CreateSelect(B.CreateICmpEQ(Mine, Size), Mine, Zero);
    for (unsigned I = 0; I != Uniforms.size(); ++I)
      if (!Following.contains(Paired + I))
        OfAll = Target.writeLane(B, OfAll, I, Uniforms[I] ? Uniforms[I] : Zero);
  }
  Instruction *Adding = SplitBlockAndInsertIfThen(
      B.CreateICmpULT(Lane, Count), End->getIterator(),
      /*Unreachable=*/false);
  B.SetInsertPoint(Adding);
  // Other passes would compute the address of each word anew.
  Value *Area = OfAll ? inScalars(B, Copies.area()) : Copies.area();
  Value *Address = addressOf(Area, Offset, Lane);
  addAt(Adding, Address, Mine);
  if (OfAll)
    addAt(Adding, B.CreateConstGEP1_64(B.getInt8Ty(), Address, Wide.size() * 8),
          OfAll);
}

/// A number for each lane: those of \p Wide for the first ones.
Value *Flush::byLane(ArrayRef<Value *> Wide, Type *Width) {
  Value *Zero = ConstantInt::get(Width, 0);
  auto TotalOf = [&](unsigned I) { return Wide[I] ? Wide[I] : Zero; };
  // A value of all lanes saves an instruction for each lane that needs it.
  SmallDenseMap<Value *, unsigned> Lanes;
  Value *All = TotalOf(0);
  for (unsigned I = 0; I != Wide.size(); ++I)
    if (++Lanes[TotalOf(I)] > Lanes[All])
      All = TotalOf(I);
  Value *Mine = All;
  for (unsigned I = 0; I != Wide.size(); ++I)
    if (TotalOf(I) != All)
      Mine = Target.writeLane(B, Mine, I, TotalOf(I));
  return Mine;
}

/// The total of word \p First + \p Word (i32). Any number if \p Totals has no such
/// word.
Value *Flush::totalOf(Value *Word, ArrayRef<Value *> Totals, unsigned First,
                      Type *Width) {
  Value *Mine = ConstantInt::get(Width, 0);
  auto HasByte = [&](unsigned I) { return Bytes.has(First + I); };
  bool HasBytes = any_of(seq<unsigned>(0, Totals.size()), HasByte);
  if (HasBytes)
    Mine = B.CreateZExt(Bytes.of(B, Target, Word, First, Totals.size()), Width);
  for (unsigned I = 0; I != Totals.size(); ++I) {
    if (HasByte(I) || (!Totals[I] && !HasBytes))
      continue;
    Value *Total = Totals[I] ? Totals[I] : ConstantInt::get(Width, 0);
    Mine = B.CreateSelect(B.CreateICmpEQ(Word, B.getInt32(I)), Total, Mine);
  }
  return Mine;
}

/// The address of word \p Word (i32) from byte \p Offset of \p Area on.
Value *Flush::addressOf(Value *Area, Value *Offset, Value *Word) {
  Value *Byte = B.CreateAdd(Offset, B.CreateShl(Word, 3));
  return B.CreateGEP(B.getInt8Ty(), Area,
                     B.CreateZExt(Byte, B.getInt64Ty()));
}

/// Adds \p Value at \p Address, before \p Adding.
void Flush::addAt(Instruction *Adding, Value *Address, Value *Value) {
  auto Scope = Adding->getContext().getOrInsertSyncScopeID(Target.deviceScope());
  B.CreateAtomicRMW(AtomicRMWInst::Add, Address,
                    B.CreateZExt(Value, B.getInt64Ty()), Align(8),
                    AtomicOrdering::Monotonic, Scope);
}

/// Adds words with the active lanes, whichever they are, before \p End. If there
/// are fewer of them than words, they go on.
void Flush::addByRank(Instruction *End, ArrayRef<Value *> Totals,
                      unsigned First, Value *Offset, Type *Width) {
  B.SetInsertPoint(End);
  Value *Rank = Target.lanesBelow(B, Lanes);
  Value *Count = B.getInt32(Totals.size());
  auto AddWord = [&](Value *Word, Instruction *Before) {
    B.SetInsertPoint(Before);
    Value *Mine = totalOf(Word, Totals, First, Width);
    Instruction *Adding = SplitBlockAndInsertIfThen(
        B.CreateICmpULT(Word, Count), Before->getIterator(),
        /*Unreachable=*/false);
    B.SetInsertPoint(Adding);
    addAt(Adding, addressOf(Copies.area(), Offset, Word), Mine);
    B.SetInsertPoint(Before);
  };
  AddWord(Rank, End);
  if (Totals.size() == 1)
    return;
  Instruction *Few = SplitBlockAndInsertIfThen(
      B.CreateICmpULT(Active, Count), End->getIterator(), /*Unreachable=*/false,
      MDBuilder(End->getContext()).createUnlikelyBranchWeights());

  BasicBlock *Head = Few->getParent();
  BasicBlock *Done = SplitBlock(Head, Few);
  Function *F = Head->getParent();
  BasicBlock *Turn = BasicBlock::Create(F->getContext(), "", F, Done);
  Head->getTerminator()->setSuccessor(0, Turn);
  B.SetInsertPoint(Turn);
  PHINode *Passed = B.CreatePHI(B.getInt32Ty(), 2);
  Value *NextPassed = B.CreateAdd(Passed, Active);
  Instruction *Again =
      B.CreateCondBr(B.CreateICmpULT(NextPassed, Count), Turn, Done);
  B.SetInsertPoint(Again);
  AddWord(B.CreateAdd(Passed, Rank), Again);
  Passed->addIncoming(Active, Head);
  Passed->addIncoming(NextPassed, Again->getParent());
}

void Flush::run(ArrayRef<LaneCount> Counts, unsigned Words, uint64_t Offset) {
  Lanes = Target.active(B);
  Active = B.CreateTrunc(B.CreateUnaryIntrinsic(Intrinsic::ctpop, Lanes),
                         B.getInt32Ty());
  // Other passes would compare it in 64 bits, in two registers.
  if (Target.hasWriteLane())
    Active = inScalars(B, Active);
  Totals.assign(Words, nullptr);
  Numbers.resize(Words);
  SmallVector<unsigned, 16> Parts(Words, 0);
  for (const LaneCount &Lane : Counts)
    for (auto [Word, _] : Lane.Words)
      ++Parts[Word];
  findFollowing(Counts, Parts);
  bool SumsBytes = Target.sumsAtOnce(*Before->getFunction());
  auto InBytes = [&](auto &Of) { return Parts[Of.first] == 1 && Of.second == 1; };
  for (const LaneCount &Lane : Counts) {
    bool IsBit = Lane.Count->getType()->isIntegerTy(1);
    if (SumsBytes && IsBit && !isa<Constant>(Lane.Count) &&
        all_of(Lane.Words, InBytes)) {
      for (auto [Word, _] : Lane.Words)
        Bytes.add(Word, Lane.Count);
      continue;
    }
    Value *Part = IsBit ? ones(Lane.Count) : Lane.Count;
    for (auto [Word, Factor] : Lane.Words) {
      if (IsBit && Following.contains(Word))
        continue;
      if (IsBit && Factor < MaxNarrow) {
        Value *Product =
            Factor == 1 ? Part : B.CreateMul(Part, B.getInt32(Factor));
        accumulate(Totals[Word], Product, 1);
        continue;
      }
      if (IsBit) {
        accumulate(Totals[Word], Part, Factor);
        continue;
      }
      Value *Number = nullptr;
      accumulate(Number, Part, Factor);
      Numbers[Word].push_back(Number);
    }
  }
  for (auto [Word, Bit] : Bytes.sum(B, Target, Lanes))
    accumulate(Totals[Word], ones(Bit), 1);
  Value *Copy =
      Target.unit(B, *Before->getFunction(), Log2_64(Copies.copies()));
  // An area has less than 4 GiB.
  Value *Start = B.CreateMul(Copy, B.getInt32(Copies.stride()));
  bring(B.CreateAdd(Start, B.getInt32(Offset)));
}

/// Adds everything to the words from byte \p Place (i32) of the area on.
void Flush::bring(Value *Place) {
  bool HasNumbers = any_of(Numbers, [](auto &Of) { return !Of.empty(); });
  if (!HasNumbers)
    return add(Totals, Place, std::nullopt);
  if (!Target.hasSums(*Before->getFunction()))
    return addAny(Place);
  Value *Votes = Target.ballot(B, areSmall(), Lanes);
  Value *CanSum = Target.canSum(B, Votes, Lanes);
  if (Target.hasWriteLane()) {
    Detour Done = detour(B.CreateNot(CanSum), [&](Instruction *End) {
      Instruction *Join = std::exchange(Before, End);
      B.SetInsertPoint(Before);
      addAny(Place);
      Before = Join;
    });
    B.SetInsertPoint(Before);
    return addSmall(Place, Done);
  }
  Instruction *Usual, *Rare;
  SplitBlockAndInsertIfThenElse(
      CanSum, Before->getIterator(), &Usual, &Rare,
      MDBuilder(Before->getContext()).createLikelyBranchWeights());
  Before = Usual;
  B.SetInsertPoint(Before);
  addSmall(Place, std::nullopt);
  Before = Rare;
  B.SetInsertPoint(Before);
  addAny(Place);
}

/// Whether (i1) all numbers of this lane are so small that the sum for any word
/// over a wave has 32 bits.
Value *Flush::areSmall() {
  unsigned Most = 1;
  Value *All = nullptr;
  for (ArrayRef<Value *> Of : Numbers) {
    Most = std::max<unsigned>(Most, Of.size());
    for (Value *Number : Of) {
      bool IsWide = All && All->getType() != Number->getType();
      if (IsWide)
        All = B.CreateZExt(All, B.getInt64Ty());
      Value *Same = IsWide ? B.CreateZExt(Number, B.getInt64Ty()) : Number;
      All = All ? B.CreateOr(All, Same) : Same;
    }
  }
  // A wave has at most 64 lanes.
  uint64_t Limit = uint64_t(1) << (32 - 6 - Log2_32_Ceil(Most + 1));
  return B.CreateICmpULT(All, ConstantInt::get(All->getType(), Limit));
}

/// Adds everything if canSum() and areSmall() hold. Waves for which they do not have
/// taken the way \p Done.
void Flush::addSmall(Value *Place, std::optional<Detour> Done) {
  Type *Int32 = B.getInt32Ty();
  SmallMapVector<Value *, Value *, 8> Sums;
  SmallDenseMap<Value *, Value *> Parts;
  SmallPtrSet<Value *, 8> AllUniform;
  SmallVector<Value *, 16> Narrow;
  for (ArrayRef<Value *> Of : Numbers) {
    if (Of.empty()) {
      Narrow.push_back(nullptr);
      continue;
    }
    Value *Mine = nullptr;
    for (Value *Number : Of) {
      // Words of one block share it.
      Value *&Part = Parts[Number];
      if (!Part)
        Part = B.CreateTrunc(Number, Int32);
      Mine = Mine ? B.CreateAdd(Mine, Part) : Part;
    }
    Narrow.push_back(Mine);
    Sums.insert({Mine, nullptr});
    if (all_of(Of, [&](Value *Number) { return isSame(Number); }))
      AllUniform.insert(Mine);
  }
  SmallVector<Value *, 8> Differing;
  for (auto &[Number, Sum] : Sums)
    if (AllUniform.contains(Number))
      Sum = B.CreateMul(Number, Active);
    else
      Differing.push_back(Number);
  for (auto [Number, Sum] : zip(Differing, Target.sums(B, Differing, Lanes)))
    Sums[Number] = Sum;
  SmallVector<Value *, 16> All(Totals);
  for (unsigned Word = 0; Word != Numbers.size(); ++Word)
    if (Narrow[Word])
      accumulate(All[Word], Sums[Narrow[Word]], 1);
  add(All, Place, Done);
}

/// Adds everything, whatever it is.
void Flush::addAny(Value *Place) {
  SmallVector<Value *, 16> Sums(Totals);
  SmallDenseMap<Value *, Value *> Known;
  for (unsigned Word = 0; Word != Numbers.size(); ++Word) {
    if (Numbers[Word].empty())
      continue;
    Value *Mine = nullptr;
    for (Value *Number : Numbers[Word]) {
      bool IsOnly = Numbers[Word].size() == 1;
      Value *Wide = IsOnly ? Number : B.CreateZExt(Number, B.getInt64Ty());
      Mine = Mine ? B.CreateAdd(Mine, Wide) : Wide;
    }
    Value *&Sum = Known[Mine];
    if (!Sum)
      Sum = sum(Mine);
    accumulate(Sums[Word], Sum, 1);
  }
  add(Sums, Place, std::nullopt);
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
               const CountedFunction &Counted, Instruction *Before,
               ArrayRef<LaneCount> Counts) {
  Flush(Target, Copies, Counted, Before)
      .run(Counts, Counted.Words.size(), Counted.Offset);
}

} // namespace rocov
