//===- Plugin.cpp - Cheap counters for GPU code ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Stock LLVM counts on a GPU by an atomic addition to one word for each
/// counter, so all waves meet there. This pass changes code after
/// InstrProfiling's lowering: a lane counts in registers, a wave brings its
/// counts to memory with one instruction when it leaves a function, and each
/// compute unit has a copy of the counters.
///
//===----------------------------------------------------------------------===//

#include "Accumulators.h"
#include "Breaks.h"
#include "CalleeCounts.h"
#include "CopiesTable.h"
#include "CounterUpdates.h"
#include "DriverNames.h"
#include "Flush.h"
#include "GpuTarget.h"
#include "Returning.h"
#include "RuntimeCalls.h"
#include "Votes.h"

#include "llvm-c/Core.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/Signals.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using namespace llvm;

// LLVM built into a program need not have it.
extern "C" LLVM_ATTRIBUTE_WEAK void LLVMGetVersion(unsigned *Major,
                                                   unsigned *Minor,
                                                   unsigned *Patch);

namespace rocov {

namespace {

#if LLVM_VERSION_MAJOR >= 23
template <typename Pass> using RequiredPass = RequiredPassInfoMixin<Pass>;
#else
template <typename Pass> struct RequiredPass : PassInfoMixin<Pass> {
  static bool isRequired() { return true; }
};
#endif

/// Ends the compiler if it is of another LLVM than this plugin: it would crash
/// later. LLVM keeps its C++ interface within a minor release. Until here, the
/// plugin refers to nothing that a later LLVM lacks.
void checkRelease() {
  if (!LLVMGetVersion)
    return;
  unsigned Major, Minor, Patch;
  LLVMGetVersion(&Major, &Minor, &Patch);
  if (Major == LLVM_VERSION_MAJOR && Minor == LLVM_VERSION_MINOR)
    return;
  std::fprintf(stderr,
               "error: librocov_pass is a plugin for LLVM %d.%d, and this "
               "compiler is LLVM %u.%u: make one for it with `rocov pass build "
               "--clang COMPILER`\n",
               LLVM_VERSION_MAJOR, LLVM_VERSION_MINOR, Major, Minor);
  // Removes the compiler's unfinished files.
  sys::RunInterruptHandlers();
  std::exit(EXIT_FAILURE);
}

bool isOptimised(OptimizationLevel Level) {
#if LLVM_VERSION_MAJOR >= 23
  return Level != OptimizationLevel::O0;
#else
  // `O0` is a variable here, and LLVM 23 has none.
  return Level.getSpeedupLevel() != 0;
#endif
}

/// The functions of \p M that count.
std::vector<CountedFunction> countedFunctions(Module &M,
                                              const GpuTarget &Target,
                                              FunctionAnalysisManager &AM) {
  std::vector<CountedFunction> All;
  for (Function &F : M) {
    // Another module has the code of such a function.
    if (F.hasAvailableExternallyLinkage())
      continue;
    bool Changed = markRuntimeCalls(F, Target);
    Changed |= settleWaveSize(F);
    if (Changed)
      AM.invalidate(F, PreservedAnalyses::none());
    CountedFunction Counted(F);
    if (!Counted.Updates.empty())
      All.push_back(std::move(Counted));
  }
  return All;
}

/// Removes uniform counters that nobody asked for.
class UniformCountersPass : public RequiredPass<UniformCountersPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &AM) {
    bool Changed = GpuTarget::of(M) && !keepsCounters(M) && dropUniformCounters(M);
    return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

/// Gives counters names for the CUDA driver.
class DriverNamesPass : public RequiredPass<DriverNamesPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &AM) {
    nameForDriver(M);
    return PreservedAnalyses::none();
  }
};

/// Turns the counts into registers, and those of loops into expressions. Also
/// does for loops what the atomic additions in them have prevented before.
FunctionPassManager promotion() {
  FunctionPassManager Passes;
  Passes.addPass(PromotePass());
  Passes.addPass(SimplifyCFGPass());
  Passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  LoopPassManager Hoisting;
  Hoisting.addPass(LICMPass(LICMOptions()));
  Passes.addPass(createFunctionToLoopPassAdaptor(std::move(Hoisting),
                                                 /*UseMemorySSA=*/true));
  LoopPassManager Loops;
  Loops.addPass(IndVarSimplifyPass());
  Loops.addPass(LoopDeletionPass());
  Passes.addPass(createFunctionToLoopPassAdaptor(std::move(Loops)));
  Passes.addPass(InstCombinePass());
  Passes.addPass(SimplifyCFGPass());
  return Passes;
}

/// Runs before most optimisations. Lanes count in registers, and marks stand for
/// the additions to counters: atomic additions would stop many optimisations,
/// and hide how often a loop runs.
class EarlyPass : public RequiredPass<EarlyPass> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &AM) {
    std::unique_ptr<GpuTarget> Target = GpuTarget::of(M);
    if (!Target || keepsCounters(M))
      return PreservedAnalyses::all();
    Returning Comes(M, *Target);
    auto &FAM = AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    for (CountedFunction &Counted : countedFunctions(M, *Target, FAM)) {
      if (Counted.F->hasOptNone())
        continue;
      threadBreaks(*Counted.F);
      FAM.invalidate(*Counted.F, PreservedAnalyses::none());
      Counted.splitAtEnds(Comes);
      auto Bring = [&](Instruction *Before, ArrayRef<LaneCount> Counts) {
        markCounts(Counted.Words, Before, Counts);
      };
      auto &Known = FAM.getResult<UniformityInfoAnalysis>(*Counted.F);
      Counted.testBeforeLoops(*Target, Comes, Known);
      accumulate(Counted, *Target, LoopFacts::of(*Counted.F, FAM), &Known, Bring);
      FAM.invalidate(*Counted.F, PreservedAnalyses::none());
    }
    return PreservedAnalyses::none();
  }
};

/// Runs after the inliner. Waves add to the copies of their units.
class CopiesPass : public RequiredPass<CopiesPass> {
public:
  explicit CopiesPass(bool Optimised) : Optimised(Optimised) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &AM) {
    std::unique_ptr<GpuTarget> Target = GpuTarget::of(M);
    if (!Target || keepsCounters(M))
      return PreservedAnalyses::all();
    auto &FAM = AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    for (Function &F : M)
      if (!findTurns(F).empty() && dropBoundedTurns(F, LoopFacts::of(F, FAM)))
        FAM.invalidate(F, PreservedAnalyses::none());
    Returning Comes(M, *Target);
    if (Optimised) {
      FunctionPassManager Promotion = promotion();
      returnCounts(M, *Target, Comes, FAM, Promotion);
    }
    std::vector<CountedFunction> All = countedFunctions(M, *Target, FAM);
    for (Function &F : M)
      if (testFullMarks(F, *Target))
        FAM.invalidate(F, PreservedAnalyses::none());
    if (All.empty())
      return PreservedAnalyses::none();
    CopiesTable Copies(*Target);
    for (CountedFunction &Counted : All)
      Counted.Offset = Copies.add(Counted.Words);
    Copies.emit(M);
    for (CountedFunction &Counted : All) {
      Counted.MayMark = false;
      UniformityInfo *Known = nullptr;
      Counted.splitAtEnds(Comes);
      FAM.invalidate(*Counted.F, PreservedAnalyses::none());
      if (Optimised) {
        Known = &FAM.getResult<UniformityInfoAnalysis>(*Counted.F);
        Counted.findUniform(*Known);
        Counted.testBeforeLoops(*Target, Comes, *Known);
      }
      auto Bring = [&](Instruction *Before, ArrayRef<LaneCount> Counts) {
        addToCopy(*Target, Copies, Counted, Before, Counts);
      };
      LoopFacts Facts = Optimised ? LoopFacts::of(*Counted.F, FAM) : LoopFacts();
      accumulate(Counted, *Target, Facts, Known, Bring);
      FAM.invalidate(*Counted.F, PreservedAnalyses::none());
    }
    for (Function &F : M)
      countTurns(F);
    return PreservedAnalyses::none();
  }

private:
  bool Optimised;
};

/// Runs after the promotion of the counts.
class VotesPass : public RequiredPass<VotesPass> {
public:
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    if (!moveVotes(F))
      return PreservedAnalyses::all();
    PreservedAnalyses Kept;
    Kept.preserveSet<CFGAnalyses>();
    return Kept;
  }
};

void addEarly(ModulePassManager &Passes, OptimizationLevel Level) {
  Passes.addPass(DriverNamesPass());
  Passes.addPass(UniformCountersPass());
  if (!isOptimised(Level))
    return;
  Passes.addPass(EarlyPass());
  Passes.addPass(createModuleToFunctionPassAdaptor(PromotePass()));
}

void addLate(ModulePassManager &Passes, OptimizationLevel Level) {
  bool Optimised = isOptimised(Level);
  Passes.addPass(CopiesPass(Optimised));
  Passes.addPass(DriverNamesPass());
  if (!Optimised)
    return;
  FunctionPassManager Last = promotion();
  Last.addPass(VotesPass());
  Passes.addPass(createModuleToFunctionPassAdaptor(std::move(Last)));
}

} // namespace

} // namespace rocov

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default")))
PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  rocov::checkRelease();
  return {LLVM_PLUGIN_API_VERSION, "rocov", LLVM_VERSION_STRING,
          [](PassBuilder &PB) {
            PB.registerPipelineEarlySimplificationEPCallback(
#if LLVM_VERSION_MAJOR >= 20
                [](ModulePassManager &Passes, OptimizationLevel Level,
                   ThinOrFullLTOPhase) { rocov::addEarly(Passes, Level); });
#else
                [](ModulePassManager &Passes, OptimizationLevel Level) {
                  rocov::addEarly(Passes, Level);
                });
#endif
            // After the inliner, so that inlined functions bring their counts
            // to memory together, and before the last optimisations of loops.
            PB.registerOptimizerEarlyEPCallback(
#if LLVM_VERSION_MAJOR >= 20
                [](ModulePassManager &Passes, OptimizationLevel Level,
                   ThinOrFullLTOPhase) { rocov::addLate(Passes, Level); });
#else
                [](ModulePassManager &Passes, OptimizationLevel Level) {
                  rocov::addLate(Passes, Level);
                });
#endif
          }};
}
