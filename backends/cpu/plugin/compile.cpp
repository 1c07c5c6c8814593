// compile.cpp - Clang's compiler proper (cc1) on one text in memory.
// Needs: a thread with a large stack, as deep expressions recurse. Leaves: nothing on disk; the file
// system that Clang sees holds the text alone, so that an #include finds nothing.
// Threading: any number of threads at once; every compile has its own instance.
#include "plugin.h"

#include <mutex>

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/FileManager.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>

#include "guard.h"
#include "link.h"

namespace hidet_clang {
namespace {

void initialize_target() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

constexpr const char* kFileName = "/kernel.c";  // never the user's: names must not reach the object

/// True and `output` filled when Clang accepts the text; `words` gets what it says.
bool compile_text(llvm::ArrayRef<const char*> arguments, llvm::StringRef text,
                  llvm::SmallVectorImpl<char>& output, std::string& words) {
  llvm::raw_string_ostream words_stream(words);
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(kFileName, 0, llvm::MemoryBuffer::getMemBuffer(text, kFileName));
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  auto* printer = new clang::TextDiagnosticPrinter(words_stream, options.get());

  clang::CompilerInstance instance;
  instance.createDiagnostics(printer, true);
  llvm::SmallVector<const char*, 48> all(arguments.begin(), arguments.end());
  all.push_back(kFileName);
  if (!clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), all,
                                                 instance.getDiagnostics()))
    return false;
  instance.createFileManager(files);
  instance.setVerboseOutputStream(llvm::nulls());
  instance.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(output));
  const auto wanted = instance.getFrontendOpts().ProgramAction;
  if (wanted == clang::frontend::EmitAssembly) {
    clang::EmitAssemblyAction action;
    return instance.ExecuteAction(action);
  }
  clang::EmitObjAction action;
  return instance.ExecuteAction(action);
}

int compile(const char* const* arguments, int count, hidet_clang_bytes text, hidet_clang_sink sink,
            void* user) {
  initialize_target();
  llvm::SmallVector<char, 0> output;
  std::string words;
  bool accepted = false;
  // Clang wants a zero byte after the text.
  const std::string copy(static_cast<const char*>(text.data), text.size);
  const bool survived = run_guarded([&] {
    accepted = compile_text({arguments, static_cast<size_t>(count)}, copy, output, words);
  });
  if (!survived) return HIDET_CLANG_CRASHED;
  sink(user, 1, words.data(), words.size());
  if (!accepted) return HIDET_CLANG_REFUSED;
  sink(user, 0, output.data(), output.size());
  return HIDET_CLANG_OK;
}

}  // namespace

}  // namespace hidet_clang

extern "C" const hidet_clang_api* hidet_clang_entry(void) {
  static const std::string version = clang::getClangFullVersion();
  static const hidet_clang_api api = {sizeof(hidet_clang_api), version.c_str(),
                                      hidet_clang::compile, hidet_clang::link};
  return &api;
}
