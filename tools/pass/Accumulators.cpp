//===- Accumulators.cpp - Counting in registers ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A lane counts how often it ran each block, in a local variable that later
/// passes turn into registers: one bit for a block outside of loops, a number
/// for a block in a loop. If the number of turns of a loop is known, they turn
/// the number into an expression. All counters of a block share its count.
///
/// The counts go to memory, and start from zero again:
///
///   - before a return: all returns become one,
///   - before an instruction in which the thread may end,
///   - in loops without a known bound, once in 2^16 turns.
///
//===----------------------------------------------------------------------===//

#include "Accumulators.h"

#include "Cycles.h"
#include "GpuTarget.h"
#include "Returning.h"
#include "Votes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/KnownBits.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <list>

using namespace llvm;

namespace rocov {

/// The most turns of loops without a bound until the counts go to memory.
constexpr uint64_t MaxTurns = 1 << 16;

/// The most words that counts in registers go to, at all places of a function
/// together: each place has code for each word.
constexpr size_t MaxBrought = 2048;

/// The most loops of a function whose turns bring counts to the copies.
constexpr unsigned MaxDue = 8;

/// The most counts of a function that go to the copies at once: the code for one
/// is a hundred times that of an atomic addition to LLVM's own counter.
constexpr unsigned MaxAtOnce = 128;

LoopFacts LoopFacts::of(Function &F, FunctionAnalysisManager &AM) {
  if (F.hasOptNone())
    return {};
  return {&AM.getResult<LoopAnalysis>(F),
          &AM.getResult<ScalarEvolutionAnalysis>(F)};
}

CountedFunction::CountedFunction(Function &F)
    : F(&F), Updates(findCounterUpdates(F)) {
  for (const CounterUpdate &Update : Updates) {
    auto *At = find(Words, Update.Word);
    WordOf.push_back(At - Words.begin());
    if (At == Words.end())
      Words.push_back(Update.Word);
  }
  pairWords();
}

/// Returns whether \p Uniform counts the runs of \p Word by all lanes.
static bool isUniformOf(const Counter &Uniform, const Counter &Word) {
  StringRef Name = Word.Array->getName(), Other = Uniform.Array->getName();
  return Uniform.Index == Word.Index && Name.consume_front("__profc_") &&
         Other.consume_front("__llvm_prf_unifcnt_") && Name == Other;
}

/// Puts the words that belong together at two places of one order.
void CountedFunction::pairWords() {
  SmallVector<unsigned, 16> First, Second, Rest;
  for (unsigned I = 0; I != Words.size(); ++I) {
    auto *Of = find_if(Words, [&](const Counter &Other) {
      return isUniformOf(Other, Words[I]);
    });
    if (Of == Words.end())
      continue;
    First.push_back(I);
    Second.push_back(Of - Words.begin());
  }
  Paired = First.size();
  for (unsigned I = 0; I != Words.size(); ++I)
    if (!is_contained(First, I) && !is_contained(Second, I))
      Rest.push_back(I);
  First.append(Second);
  First.append(Rest);
  SmallVector<Counter, 16> Old = std::move(Words);
  Words.clear();
  SmallVector<unsigned, 16> PlaceOf(Old.size());
  for (unsigned I = 0; I != First.size(); ++I) {
    Words.push_back(Old[First[I]]);
    PlaceOf[First[I]] = I;
  }
  for (unsigned &Word : WordOf)
    Word = PlaceOf[Word];
}

void CountedFunction::findUniform(const UniformityInfo &Known) {
  auto Differs = [&](const Use &Step) {
#if LLVM_VERSION_MAJOR >= 23
    return Known.isDivergentAtUse(Step);
#else
    return Known.isDivergentUse(Step);
#endif
  };
  for (const CounterUpdate &Update : Updates)
    if (Use &Step = Update.stepUse(); !Differs(Step))
      Uniform.insert(Step);
}

/// Moves the local variables of \p F to its start. clang 23 calls its runtime before
/// them, and one that a split leaves in another block would get its memory anew
/// in each run, of which the kernel's size knows nothing.
static void hoistVariables(Function &F) {
  BasicBlock &Entry = F.getEntryBlock();
  auto First = Entry.getFirstInsertionPt();
  for (Instruction &I : make_early_inc_range(Entry)) {
    auto *Variable = dyn_cast<AllocaInst>(&I);
    if (!Variable || !Variable->isStaticAlloca())
      continue;
    if (&*First == Variable)
      ++First;
    else
      Variable->moveBefore(Entry, First);
  }
}

namespace {

/// Where the lanes of a wave part.
class Partings {
public:
  Partings(Function &F, UniformityInfo &Known) : Known(Known) {
    Dominators.recalculate(F);
    Cycles.compute(F);
    PostDominatorTree Post(F);
    for (BasicBlock &Block : F) {
      if (!Block.getTerminator()->getNumSuccessors() || !Post.getNode(&Block))
        continue;
      auto *Joined = Post.getNode(&Block)->getIDom();
      for (BasicBlock *Next : successors(&Block))
        for (auto *It = Post.getNode(Next); It && It != Joined; It = It->getIDom())
          if (It->getBlock())
            Deciding[It->getBlock()].insert(&Block);
    }
  }

  /// The block before the outermost loop around \p Block with the same lanes, in
  /// each turn. Null if there is none.
  BasicBlock *beforeLoops(BasicBlock *Block) {
    BasicBlock *Outermost = nullptr;
    for (CyclePtr C = cycleAround(Cycles, Block); C; C = C->getParentCycle()) {
      auto *Header = Dominators.getNode(C->getHeader());
      if (!C->isReducible() || !Header || !Header->getIDom() ||
          !hasSameLanes(Header->getIDom()->getBlock(), Block))
        break;
      Outermost = Header->getIDom()->getBlock();
    }
    return Outermost;
  }

private:
  /// Returns whether the lanes that run \p Block are those that have run \p Before,
  /// which dominates it, last.
  bool hasSameLanes(BasicBlock *Before, BasicBlock *Block) {
    SmallSetVector<BasicBlock *, 16> Between;
    Between.insert(Block);
    for (unsigned I = 0; I != Between.size(); ++I)
      if (Between[I] != Before)
        for (BasicBlock *Previous : predecessors(Between[I]))
          Between.insert(Previous);
    SmallSetVector<BasicBlock *, 8> Decided;
    Decided.insert(Block);
    for (unsigned I = 0; I != Decided.size(); ++I) {
      auto Of = Deciding.find(Decided[I]);
      if (Of == Deciding.end() || (Decided[I] == Before && Before != Block))
        continue;
      for (BasicBlock *Branch : Of->second)
        if (Between.contains(Branch)) {
          if (Known.hasDivergentTerminator(*Branch))
            return false;
          Decided.insert(Branch);
        }
    }
    return true;
  }

  UniformityInfo &Known;
  DominatorTree Dominators;
  CycleInfo Cycles;
  /// For each block the branches that decide whether it runs.
  DenseMap<BasicBlock *, SmallSetVector<BasicBlock *, 2>> Deciding;
};

} // namespace

/// Lets \p Update add the result of another test whether all lanes are active.
static void replaceTest(CounterUpdate &Update, Value *Other) {
  auto *Test = cast<Instruction>(Update.step());
  Update.stepUse().set(Other);
  if (isFullMark(Test) && Test->use_empty())
    Test->eraseFromParent();
  else
    RecursivelyDeleteTriviallyDeadInstructions(Test);
}

void CountedFunction::testBeforeLoops(const GpuTarget &Target,
                                      const Returning &Comes,
                                      UniformityInfo &Known) {
  // Not if lanes may be gone in the loop.
  if (!Target.lanesMeet() || any_of(instructions(*F), [&](Instruction &I) {
        return Comes.mayEndThread(I);
      }))
    return;
  std::optional<Partings> Lanes;
  SmallDenseMap<BasicBlock *, Value *> Tests;
  for (CounterUpdate &Update : Updates) {
    auto *Test = dyn_cast<Instruction>(Update.step());
    if (!Test || !(isFullMark(Test) || Target.isFullTest(Test)))
      continue;
    if (!Lanes)
      Lanes.emplace(*F, Known);
    BasicBlock *Before = Lanes->beforeLoops(Test->getParent());
    if (!Before)
      continue;
    Value *&Earlier = Tests[Before];
    if (!Earlier) {
      IRBuilder<> B(Before->getTerminator());
      Earlier = isFullMark(Test) ? markFull(B) : Target.isFull(B);
    }
    replaceTest(Update, Earlier);
  }
}

void CountedFunction::splitAtEnds(const Returning &Comes) {
  hoistVariables(*F);
  for (Instruction &I : instructions(F))
    if (Comes.mayEndThread(I))
      Ends.push_back(&I);
  for (Instruction *End : Ends) {
    SplitBlock(End->getParent(), End);
    SplitBlock(End->getParent(), End->getNextNode());
  }
}

/// The most turns of \p C each time that it is entered, if there is a bound
/// that is known on entry: how often its header runs, or else any other block.
static std::optional<uint64_t> maxTurns(CyclePtr C, LoopFacts Facts,
                                        bool OfHeader = true) {
  if (!Facts.Loops || !C->isReducible())
    return std::nullopt;
  Loop *L = Facts.Loops->getLoopFor(C->getHeader());
  if (!L || L->getHeader() != C->getHeader())
    return std::nullopt;
  const SCEV *Max = Facts.Evolution->getSymbolicMaxBackedgeTakenCount(L);
  if (isa<SCEVCouldNotCompute>(Max))
    return std::nullopt;
  auto Limit = [&](const SCEV *Count) {
    // A rotated loop runs n - 1 turns more if n is not 0.
    Count = Facts.Evolution->applyLoopGuards(Count, L);
    return Facts.Evolution->getUnsignedRangeMax(Count).getLimitedValue();
  };
  // The last run of a header that leaves the loop runs no other block. So the
  // blocks of `for (u32 i = 0; i < n; i++)` run less than 2^32 times.
  const SCEV *AtHeader = Facts.Evolution->getExitCount(
      L, L->getHeader(), ScalarEvolution::SymbolicMaximum);
  if (!OfHeader && !isa<SCEVCouldNotCompute>(AtHeader))
    return Limit(AtHeader);
  return SaturatingAdd(Limit(Max), uint64_t(1));
}

/// The most runs of a block in \p C until the counts go to memory, at the latest
/// after MaxTurns turns of a loop without a bound.
static uint64_t maxRuns(CyclePtr C, LoopFacts Facts, bool OfHeader) {
  uint64_t Most = 1;
  for (; C; C = C->getParentCycle()) {
    auto Turns = maxTurns(C, Facts, OfHeader);
    Most = SaturatingMultiply(Most, Turns.value_or(MaxTurns));
    if (!Turns)
      break;
    OfHeader = false;
  }
  return Most;
}

/// Returns whether \p C and all cycles around it have a bound.
static bool areBounded(CyclePtr C, LoopFacts Facts) {
  for (; C; C = C->getParentCycle())
    if (!maxTurns(C, Facts))
      return false;
  return true;
}

/// Returns whether the runs of \p Block, which leaves its loop, may be one more
/// than those of the other blocks.
static bool isLeavingHeader(const BasicBlock *Block, CyclePtr C) {
  return C->getHeader() == Block && any_of(successors(Block), [&](auto *Next) {
           return !C->contains(Next);
         });
}

/// All cycles, each before those in it.
static SmallVector<CyclePtr, 8> allCycles(const CycleInfo &Cycles) {
  SmallVector<CyclePtr, 8> All;
  appendOutermost(Cycles, All);
  for (unsigned I = 0; I != All.size(); ++I)
    appendChildren(All[I], All);
  return All;
}

namespace {

/// The part of an update's step that differs between lanes. Null if all lanes
/// add the same number.
Value *variableStep(const CounterUpdate &Update) {
  Value *Step = Update.step();
  return isa<ConstantInt>(Step) ? nullptr : Step;
}

/// A count of each lane.
struct Accumulator {
  BasicBlock *Block;
  /// Null: count the runs of the block.
  Value *Step;
  /// The updates that it stands for, and the words with factors.
  SmallVector<Instruction *, 4> Updates;
  SmallVector<std::pair<unsigned, uint64_t>, 4> Words;
  /// The test in the block whether all lanes of the wave run it, and the words that
  /// count such runs. Null if no word does.
  Instruction *Full = nullptr;
  SmallVector<std::pair<unsigned, uint64_t>, 1> FullWords;
  SmallVector<Instruction *, 1> FullUpdates;
  /// i1, i32 or i64.
  Type *Width = nullptr;
  /// The depth of cycles around the block.
  unsigned Depth = 0;
  /// Set if lanes leave these cycles one by one.
  bool LosesLanes = false;
  /// Set if the block ends with the only return: there the count is at hand.
  bool IsDirect = false;
  /// The block that adds in each turn of the loop if the block ran in it. Null if
  /// the block itself adds.
  BasicBlock *Meet = nullptr;
  AllocaInst *Variable = nullptr;
  /// The count of the runs by all lanes, if there is a meeting block.
  AllocaInst *FullVariable = nullptr;
  /// The bit in the variable, if the width is one bit: 32 bits share a variable.
  unsigned Bit = 0;

  bool isBit() const { return Width->isIntegerTy(1); }
};

class Accumulation {
public:
  Accumulation(CountedFunction &Counted, const GpuTarget &Target,
               LoopFacts Facts, UniformityInfo *Known, rocov::Bring Bring)
      : Counted(Counted), F(*Counted.F), Target(Target), Facts(Facts),
        Known(Known), Bring(Bring) {}

  void run();

private:
  void findLoops(const CycleInfo &Cycles);
  void gather();
  void chooseWidth(Accumulator &It, const CycleInfo &Cycles) const;
  void findDirect();
  void findMeets();
  bool isFullTest(const Value *It) const {
    return isFullMark(It) || Target.isFullTest(It);
  }
  void separateFull();
  void chooseRegisters();
  void countInMemory(Accumulator &It);
  AllocaInst *makeLocal(Type *Width);
  AllocaInst *makeVariable(Type *Width, bool OfLane = false);
  void addToCounters(Instruction *Before, ArrayRef<LaneCount> Counts);
  void countInVariable(Accumulator &It);
  Value *count(IRBuilderBase &B, const Accumulator &It);
  bool losesLanes(CyclePtr C) const;
  void unifyReturns();
  void flush(Instruction *Before, bool Reset);
  void flushInLoops();

  CountedFunction &Counted;
  Function &F;
  const GpuTarget &Target;
  LoopFacts Facts;
  UniformityInfo *Known;
  rocov::Bring Bring;
  SmallVector<Accumulator, 16> Accumulators;
  SmallVector<AllocaInst *, 16> Variables;
  /// Set if all lanes that come to the function bring all of their counts to memory
  /// together.
  bool Stay = false;
  /// The counts that went to memory at once.
  unsigned AtOnce = 0;
  /// The last variable with bits, and the number of bits in all.
  AllocaInst *BitVariable = nullptr;
  unsigned Bits = 0;
  /// The updates that an earlier run has left where the counts go to memory in a
  /// loop: the word and the step.
  MapVector<BasicBlock *, SmallVector<std::pair<unsigned, Value *>, 4>> Due;
  /// The blocks in loops in which the counts go to memory.
  SmallSetVector<BasicBlock *, 4> DueBlocks;
  /// A point in each loop without a bound and without such a block.
  SmallVector<Instruction *, 4> Unmarked;
};

/// Groups the updates by block.
void Accumulation::gather() {
  MapVector<std::pair<BasicBlock *, Value *>, Accumulator> Groups;
  SmallPtrSet<BasicBlock *, 16> Running;
  for (const CounterUpdate &Update : Counted.Updates)
    if (!variableStep(Update))
      Running.insert(Update.Add->getParent());
  for (unsigned I = 0; I != Counted.Updates.size(); ++I) {
    CounterUpdate &Update = Counted.Updates[I];
    Value *Step = variableStep(Update);
    BasicBlock *Block = Update.Add->getParent();
    if (DueBlocks.contains(Block)) {
      Due[Block].push_back({Counted.WordOf[I], Update.step()});
      Update.Add->eraseFromParent();
      continue;
    }
    if (Step && isFullTest(Step) && Running.contains(Block) &&
        cast<Instruction>(Step)->getParent() == Block) {
      Accumulator &Group = Groups[{Block, nullptr}];
      Group.Block = Block;
      Group.Step = nullptr;
      if (!Group.Full)
        Group.Full = cast<Instruction>(Step);
      else if (Step != Group.Full)
        replaceTest(Update, Group.Full);
      Group.FullWords.push_back({Counted.WordOf[I], 1});
      Group.FullUpdates.push_back(Update.Add);
      continue;
    }
    Accumulator &Group = Groups[{Block, Step}];
    Group.Block = Block;
    Group.Step = Step;
    Group.Updates.push_back(Update.Add);
    uint64_t Factor =
        Step ? 1 : cast<ConstantInt>(Update.step())->getZExtValue();
    auto *Same = find_if(Group.Words, [&](auto &It) {
      return It.first == Counted.WordOf[I];
    });
    if (Same != Group.Words.end())
      Same->second += Factor;
    else
      Group.Words.push_back({Counted.WordOf[I], Factor});
  }
  for (auto &[_, Group] : Groups)
    Accumulators.push_back(std::move(Group));
}

void Accumulation::chooseWidth(Accumulator &It, const CycleInfo &Cycles) const {
  LLVMContext &Context = F.getContext();
  uint64_t Most = 1;
  if (It.Step) {
    KnownBits Known = computeKnownBits(It.Step, F.getParent()->getDataLayout());
    Most = Known.getMaxValue().getLimitedValue();
  }
  if (CyclePtr C = cycleAround(Cycles, It.Block)) {
    It.Depth = C->getDepth();
    bool OfHeader = C->getHeader() == It.Block;
    Most = SaturatingMultiply(Most, maxRuns(C, Facts, OfHeader));
    // An accumulator of one bit is set, not added to.
    Most = std::max<uint64_t>(Most, 2);
    // A later run may find a bound of 2^32: see dropBoundedTurns().
    if (isLeavingHeader(It.Block, C) && !areBounded(C, Facts))
      Most = UINT64_MAX;
  }
  It.Width = Most <= 1            ? Type::getInt1Ty(Context)
             : Most <= UINT32_MAX ? Type::getInt32Ty(Context)
                                  : Type::getInt64Ty(Context);
}

/// Finds the counts that need no variable. An earlier run has put most updates
/// before the return.
void Accumulation::findDirect() {
  BasicBlock *Only = nullptr;
  for (BasicBlock &Block : F)
    if (isa<ReturnInst>(Block.getTerminator())) {
      if (Only)
        return;
      Only = &Block;
    }
  for (Accumulator &It : Accumulators)
    It.IsDirect = It.Block == Only;
}

/// Returns whether later passes may run \p Block when its turn would not have: it
/// computes, and writes no memory but local variables.
static bool onlyComputes(BasicBlock &Block, const Instruction *Full) {
  // The meeting block tests it.
  auto *Test = dyn_cast_or_null<ICmpInst>(Full);
  const Value *Vote = Test ? Test->getOperand(0) : Full;
  auto IsLocal = [](const Value *Address) {
    auto *Variable = dyn_cast<AllocaInst>(Address->stripPointerCasts());
    return Variable && isAllocaPromotable(Variable);
  };
  return all_of(Block, [&](Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      return !Load->isVolatile() && IsLocal(Load->getPointerOperand());
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return !Store->isVolatile() && IsLocal(Store->getPointerOperand());
    return &I == Vote || isCounterUpdate(I) || I.isTerminator() ||
           isSafeToSpeculativelyExecute(&I);
  });
}

/// Finds the blocks of loops that would not be blocks without counting, because
/// later passes would turn the branch to them into a choice of values. They note
/// that they ran, and the block in which the ways meet again adds that.
void Accumulation::findMeets() {
  // Otherwise the thread may end before the ways meet.
  if (!Facts.Loops || !Counted.Ends.empty())
    return;
  CycleInfo Cycles;
  Cycles.compute(F);
  DominatorTree Dominators(F);
  PostDominatorTree PostDominators(F);
  for (Accumulator &It : Accumulators) {
    CyclePtr C = cycleAround(Cycles, It.Block);
    if (!C || It.isBit() || It.Step || !onlyComputes(*It.Block, It.Full))
      continue;
    auto *Node = PostDominators.getNode(It.Block);
    auto *Next = Node ? Node->getIDom() : nullptr;
    BasicBlock *Meet = Next ? Next->getBlock() : nullptr;
    // Not if all that come there have run it.
    if (!Meet || Dominators.dominates(It.Block, Meet))
      continue;
    // Within a turn, and without a loop between, which may take long.
    auto IsBetween = [&](BasicBlock *Block) {
      return cycleAround(Cycles, Block) == C && Block != C->getHeader();
    };
    SmallSetVector<BasicBlock *, 8> Way;
    Way.insert(It.Block);
    Way.insert(Meet);
    bool IsShort = all_of(Way, IsBetween);
    for (unsigned I = 0; IsShort && I != Way.size(); ++I)
      for (BasicBlock *Following : successors(Way[I]))
        if (Way[I] != Meet && Way.insert(Following))
          IsShort &= IsBetween(Following);
    if (IsShort)
      It.Meet = Meet;
  }
}

/// The runs of a block by all lanes follow from the count of each lane if the lanes
/// meet again, with their counts, before any of them is gone. Elsewhere, the block
/// counts them.
void Accumulation::separateFull() {
  // A lane that is due in a loop brings its bits to memory before others do.
  Stay = Target.lanesMeet() && Facts.Loops && Counted.Ends.empty() &&
              DueBlocks.empty() && Unmarked.empty();
  SmallVector<Accumulator, 8> Others;
  for (Accumulator &It : Accumulators) {
    if (!It.Full)
      continue;
    if (It.isBit() || It.IsDirect ? Stay : Target.lanesMeet() && It.Meet) {
      It.Updates.append(It.FullUpdates);
      continue;
    }
    Accumulator &Other = Others.emplace_back();
    Other.Block = It.Block;
    Other.Step = It.Full;
    Other.Updates.append(It.FullUpdates);
    Other.Words.append(It.FullWords.begin(), It.FullWords.end());
    Other.Width = It.Width;
    Other.Depth = It.Depth;
    Other.LosesLanes = It.LosesLanes;
    Other.IsDirect = It.IsDirect;
    It.Full = nullptr;
    It.FullWords.clear();
  }
  for (Accumulator &Other : Others)
    Accumulators.push_back(std::move(Other));
}

/// Takes those accumulators out that are too many for registers. Those in the
/// deepest loops stay.
void Accumulation::chooseRegisters() {
  stable_sort(Accumulators, [](const Accumulator &A, const Accumulator &B) {
    return A.Depth > B.Depth;
  });
  size_t Places = DueBlocks.size() + Unmarked.size() + Counted.Ends.size() + 1;
  size_t MaxWords = MaxBrought / Places;
  unsigned Bits = 0, Numbers = 0;
  size_t Words = 0;
  SmallVector<Accumulator, 16> Kept;
  for (Accumulator &It : Accumulators) {
    bool Fits = It.isBit() ? ++Bits <= MaxBits : ++Numbers <= MaxNumbers;
    Words += It.Words.size() + It.FullWords.size();
    if ((Fits && Words <= MaxWords) || It.IsDirect)
      Kept.push_back(std::move(It));
    else
      countInMemory(It);
  }
  Accumulators = std::move(Kept);
}

/// Adds the counts of each lane to LLVM's own counters, as its lowering does.
void Accumulation::addToCounters(Instruction *Before,
                                 ArrayRef<LaneCount> Counts) {
  IRBuilder<> B(Before);
  for (const LaneCount &Lane : Counts)
    for (auto [Word, Factor] : Lane.Words) {
      const Counter &Of = Counted.Words[Word];
      Value *Step = B.CreateZExtOrTrunc(Lane.Count, B.getInt64Ty());
      if (Factor != 1)
        Step = B.CreateMul(Step, B.getInt64(Factor));
      Value *Address = B.CreateConstInBoundsGEP2_32(
          Of.Array->getValueType(), Of.Array, 0, Of.Index);
      B.CreateAtomicRMW(AtomicRMWInst::Add, Address, Step, MaybeAlign(8),
                        AtomicOrdering::Monotonic);
    }
}

void Accumulation::countInMemory(Accumulator &It) {
  Instruction *Last = It.Updates.back();
  Value *Step = It.Step;
  if (!Step)
    Step = ConstantInt::getTrue(F.getContext());
  SmallVector<LaneCount, 2> Counts = {{Step, It.Words}};
  if (It.Full)
    Counts.push_back({It.Full, It.FullWords});
  if (Counted.MayMark || ++AtOnce <= MaxAtOnce)
    Bring(Last, Counts);
  else
    addToCounters(Last, Counts);
  for (Instruction *Update : It.Updates)
    Update->eraseFromParent();
}

/// Makes a local variable that is 0 at first.
AllocaInst *Accumulation::makeLocal(Type *Width) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  IRBuilder<> Entry(&F.getEntryBlock(), F.getEntryBlock().getFirstInsertionPt());
  AllocaInst *Variable = Entry.CreateAlloca(Width, DL.getAllocaAddrSpace());
  Entry.CreateStore(ConstantInt::get(Width, 0), Variable);
  return Variable;
}

/// Makes a variable (i32 or i64) for counts. \p OfLane says that the lanes have
/// different counts.
AllocaInst *Accumulation::makeVariable(Type *Width, bool OfLane) {
  AllocaInst *Variable = Variables.emplace_back(makeLocal(Width));
  if (!OfLane)
    return Variable;
  // A 0 in a register for each lane. The lanes of a loop count alike as long as
  // they are in it, so LLVM would count in one register for all, and copy the
  // count into that for each lane in every turn, for the lanes that leave.
  auto *First = cast<StoreInst>(Variable->getNextNode());
  IRBuilder<> B(First);
  auto *Type = FunctionType::get(Width, {Width}, false);
  First->setOperand(
      0, B.CreateCall(InlineAsm::get(Type, "", "=v,0", /*hasSideEffects=*/false),
                      {First->getValueOperand()}));
  return Variable;
}

/// Returns whether lanes leave \p C, or a cycle around it, before others do.
bool Accumulation::losesLanes(CyclePtr C) const {
  if (!Known || !Target.hasWriteLane())
    return false;
  for (; C; C = C->getParentCycle()) {
    SmallVector<BasicBlock *, 4> Leaving;
    C->getExitingBlocks(Leaving);
    if (any_of(Leaving, [&](BasicBlock *Block) {
          return Known->hasDivergentTerminator(*Block);
        }))
      return true;
  }
  return false;
}

void Accumulation::countInVariable(Accumulator &It) {
  Instruction *Last = It.Updates.back();
  IRBuilder<> B(Last);
  if (It.IsDirect) {
    // count() takes the step.
  } else if (It.isBit()) {
    unsigned Place = Bits++;
    if (Place % 32 == 0)
      BitVariable = makeVariable(B.getInt32Ty());
    It.Variable = BitVariable;
    It.Bit = Place % 32;
    Value *Old = B.CreateLoad(B.getInt32Ty(), It.Variable);
    Value *Set = B.getInt32(1);
    if (It.Step)
      Set = B.CreateZExtOrTrunc(It.Step, B.getInt32Ty());
    B.CreateStore(B.CreateOr(Old, B.CreateShl(Set, It.Bit)), It.Variable);
  } else {
    It.Variable = makeVariable(It.Width, It.LosesLanes);
    Value *Step = It.Step;
    if (It.Meet) {
      AllocaInst *Ran = makeLocal(B.getInt1Ty());
      B.CreateStore(B.getTrue(), Ran);
      B.SetInsertPoint(&*It.Meet->getFirstInsertionPt());
      Step = B.CreateLoad(B.getInt1Ty(), Ran);
      B.CreateStore(B.getFalse(), Ran);
      if (It.Full) {
        It.FullVariable = makeVariable(It.Width, It.LosesLanes);
        Value *Old = B.CreateLoad(It.Width, It.FullVariable);
        Value *Holds = Target.holdsInAll(B, Step);
        markVote(cast<ICmpInst>(Holds)->getOperand(0));
        Value *All = B.CreateZExt(Holds, It.Width);
        B.CreateStore(B.CreateAdd(Old, All, "", /*HasNUW=*/true),
                      It.FullVariable);
      }
    }
    Value *Old = B.CreateLoad(It.Width, It.Variable);
    Step = Step ? B.CreateZExtOrTrunc(Step, It.Width)
                : ConstantInt::get(It.Width, 1);
    // No wrap: later passes need not think about it.
    B.CreateStore(B.CreateAdd(Old, Step, "", /*HasNUW=*/true), It.Variable);
  }
  for (Instruction *Update : It.Updates)
    Update->eraseFromParent();
  // A vote would keep other passes from moving or choosing the block's values.
  if (It.Full && isFullMark(It.Full) && It.Full->use_empty())
    It.Full->eraseFromParent();
  else if (It.Full)
    RecursivelyDeleteTriviallyDeadInstructions(It.Full);
}

/// The count of \p It in this lane.
Value *Accumulation::count(IRBuilderBase &B, const Accumulator &It) {
  if (It.IsDirect) {
    if (!It.Step)
      return ConstantInt::get(It.Width, 1);
    auto *Wide = dyn_cast<ZExtInst>(It.Step);
    bool WasNarrow = Wide && Wide->getSrcTy() == It.Width;
    return WasNarrow ? Wide->getOperand(0)
                     : B.CreateZExtOrTrunc(It.Step, It.Width);
  }
  // Nothing resets it, and every thread that comes here has been there.
  if (It.isBit() && !It.Step && It.Block == &F.getEntryBlock() &&
      Counted.Ends.empty() && DueBlocks.empty())
    return B.getTrue();
  Value *Value = B.CreateLoad(It.Variable->getAllocatedType(), It.Variable);
  if (!It.isBit())
    return Value;
  return B.CreateICmpNE(B.CreateAnd(Value, B.getInt32(1u << It.Bit)),
                        B.getInt32(0));
}

/// Gives the function one return, so that all lanes bring their counts to memory
/// together.
void Accumulation::unifyReturns() {
  SmallVector<ReturnInst *, 4> Returns;
  for (BasicBlock &Block : F)
    if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator()))
      Returns.push_back(Return);
  if (Returns.size() < 2)
    return;
  BasicBlock *Only = BasicBlock::Create(F.getContext(), "", &F);
  IRBuilder<> B(Only);
  PHINode *Result = nullptr;
  if (F.getReturnType()->isVoidTy()) {
    B.CreateRetVoid();
  } else {
    Result = B.CreatePHI(F.getReturnType(), Returns.size());
    B.CreateRet(Result);
  }
  for (ReturnInst *Return : Returns) {
    if (Result)
      Result->addIncoming(Return->getReturnValue(), Return->getParent());
    IRBuilder<>(Return).CreateBr(Only);
    Return->eraseFromParent();
  }
}

void Accumulation::flush(Instruction *Before, bool Reset) {
  IRBuilder<> B(Before);
  SmallVector<LaneCount, 16> Counts;
  for (Accumulator &It : Accumulators)
    if (!It.IsDirect || isa<ReturnInst>(Before))
    {
      // All lanes have counted the runs by all lanes, unless some have brought
      // theirs to memory earlier.
      bool AreSame = Stay && isa<ReturnInst>(Before);
      Value *Count = count(B, It);
      if (AreSame && !It.isBit() && It.Step && isFullTest(It.Step))
        Count = Target.anyLane(B, Count, nullptr);
      Counts.push_back({Count, It.Words});
      if (It.FullVariable) {
        Count = B.CreateLoad(It.Width, It.FullVariable);
        if (AreSame)
          Count = Target.anyLane(B, Count, nullptr);
      } else if (It.Full) {
        bool Always = isa<ConstantInt>(Count) && Counted.MayMark;
        Count = Always ? markFull(B) : Target.holdsInAll(B, Count);
      }
      if (It.Full)
        Counts.push_back({Count, It.FullWords});
    }
  auto Left = Due.find(Before->getParent());
  std::list<std::pair<unsigned, uint64_t>> Words;
  if (Left != Due.end())
    for (auto [Word, Step] : Left->second) {
      Words.push_back({Word, 1});
      Counts.push_back({Step, Words.back()});
    }
  if (Counts.empty())
    return;
  // Such a place is rarely reached.
  bool IsDue = DueBlocks.contains(Before->getParent());
  if (!Counted.MayMark && IsDue && DueBlocks.size() > MaxDue)
    addToCounters(Before, Counts);
  else
    Bring(Before, Counts);
  if (!Reset)
    return;
  B.SetInsertPoint(Before);
  for (AllocaInst *It : Variables)
    B.CreateStore(ConstantInt::get(It->getAllocatedType(), 0), It);
}

/// The block that runs if the turn at \p Mark is due. Null if other passes have
/// changed that.
static BasicBlock *dueBlock(CallInst *Mark) {
#if LLVM_VERSION_MAJOR >= 23
  using Conditional = CondBrInst;
#else
  using Conditional = BranchInst;
#endif
  auto *Branch = Mark->hasOneUse()
                     ? dyn_cast<Conditional>(Mark->user_back())
                     : nullptr;
  BasicBlock *Due = Branch ? Branch->getSuccessor(0) : nullptr;
  return Due && Due->getSinglePredecessor() ? Due : nullptr;
}

/// The instruction before which each turn of \p C passes: at the end of its only
/// latch, so that later passes can rotate the loop, or in its header.
static Instruction *turningPoint(CyclePtr C) {
  BasicBlock *Header = C->getHeader(), *Latch = nullptr;
  for (BasicBlock *Block : predecessors(Header)) {
    if (!C->contains(Block))
      continue;
    if (Latch && Latch != Block)
      return &*Header->getFirstInsertionPt();
    Latch = Block;
  }
  if (Latch->getSingleSuccessor())
    return Latch->getTerminator();
  // A latch that may leave the loop may be where a `break` passes, until later
  // passes thread it through.
  BasicBlock *Turn = SplitEdge(Latch, Header);
  return Turn->getTerminator();
}

/// Finds the loops without a bound. An earlier run of this pass has marked the
/// turns of some.
void Accumulation::findLoops(const CycleInfo &Cycles) {
  SmallVector<CyclePtr, 4> Marked;
  for (CallInst *Mark : findTurns(F))
    if (BasicBlock *Due = dueBlock(Mark)) {
      DueBlocks.insert(Due);
      Marked.push_back(cycleAround(Cycles, Mark->getParent()));
    }
  for (CyclePtr C : allCycles(Cycles))
    if (!is_contained(Marked, C) && !maxTurns(C, Facts))
      Unmarked.push_back(turningPoint(C));
}

/// Lets the counts go to memory in the turns of loops that are due.
void Accumulation::flushInLoops() {
  for (Instruction *Start : Unmarked) {
    IRBuilder<> B(Start);
    Instruction *Due = SplitBlockAndInsertIfThen(
        markTurn(B), Start->getIterator(), /*Unreachable=*/false,
        MDBuilder(F.getContext()).createUnlikelyBranchWeights());
    DueBlocks.insert(Due->getParent());
  }
  for (BasicBlock *Due : DueBlocks)
    flush(Due->getTerminator(), /*Reset=*/true);
}

void Accumulation::run() {
  CycleInfo Cycles;
  Cycles.compute(F);
  findLoops(Cycles);
  gather();
  for (Accumulator &It : Accumulators) {
    chooseWidth(It, Cycles);
    It.LosesLanes = losesLanes(cycleAround(Cycles, It.Block));
  }
  findDirect();
  unifyReturns();
  findMeets();
  separateFull();
  chooseRegisters();
  for (Accumulator &It : Accumulators)
    countInVariable(It);
  flushInLoops();
  for (Instruction *End : Counted.Ends)
    flush(End, /*Reset=*/true);
  for (BasicBlock &Block : F)
    if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator())) {
      flush(Return, /*Reset=*/false);
      break;
    }
}

} // namespace

void accumulate(CountedFunction &Counted, const GpuTarget &Target,
                LoopFacts Facts, UniformityInfo *Known, Bring Bring) {
  Accumulation(Counted, Target, Facts, Known, Bring).run();
}

bool dropBoundedTurns(Function &F, LoopFacts Facts) {
  CycleInfo Cycles;
  Cycles.compute(F);
  // Numbers of 32 bits must not overflow without the turns that are due.
  auto IsBounded = [&](CyclePtr C) {
    SmallVector<CyclePtr, 4> Left = {C};
    for (unsigned I = 0; I != Left.size(); ++I) {
      if (!maxTurns(Left[I], Facts) ||
          maxRuns(Left[I], Facts, /*OfHeader=*/false) > UINT32_MAX)
        return false;
      appendChildren(Left[I], Left);
    }
    return true;
  };
  bool Dropped = false;
  for (CallInst *Mark : findTurns(F)) {
    CyclePtr C = cycleAround(Cycles, Mark->getParent());
    if (C && !IsBounded(C))
      continue;
    Mark->replaceAllUsesWith(ConstantInt::getFalse(F.getContext()));
    Mark->eraseFromParent();
    Dropped = true;
  }
  if (!Dropped)
    return false;
  for (BasicBlock &Block : F)
    ConstantFoldTerminator(&Block);
  removeUnreachableBlocks(F);
  return true;
}

void countTurns(Function &F) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  for (CallInst *Mark : findTurns(F)) {
    IRBuilder<> Entry(&F.getEntryBlock(),
                      F.getEntryBlock().getFirstInsertionPt());
    Type *Int32 = Entry.getInt32Ty();
    auto *Turns = Entry.CreateAlloca(Int32, DL.getAllocaAddrSpace());
    Entry.CreateStore(Entry.getInt32(0), Turns);
    IRBuilder<> B(Mark);
    Value *Turn = B.CreateAdd(B.CreateLoad(Int32, Turns), B.getInt32(1));
    B.CreateStore(Turn, Turns);
    Value *Rest = B.CreateAnd(Turn, B.getInt32(MaxTurns - 1));
    Mark->replaceAllUsesWith(B.CreateICmpEQ(Rest, B.getInt32(0)));
    Mark->eraseFromParent();
  }
}

} // namespace rocov
