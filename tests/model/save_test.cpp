// save_test.cpp - files of real models when the disk is full, folders are read only, names are odd, bytes are damaged;
// and an independent reader's opinion.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "model/nets.h"
#include "tools/models.h"

namespace hidet::test {
namespace {

using tools_test::How;
using tools_test::Ran;
using tools_test::read_file;

const CompiledModel& model() {
  static const CompiledModel m = build(conv_net(ConvWeights(1)));
  return m;
}
std::string bytes_of(const std::vector<uint8_t>& v) { return {v.begin(), v.end()}; }

/// Runs `body` in a child process and gives its exit status; 1000 + the signal where one ended it.
template <class F>
int in_child(F body) {
  const pid_t pid = fork();
  if (pid == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const Error& e) {
      status = static_cast<int>(e.code());
    }
    _exit(status);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A disk that is full after `bytes` more: writes past them fail, as they do on a full disk, with another errno.
void full_after(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Wherever in the file the disk gets full: the old file stays, nothing else is left, the error names the file.
TEST(Save, FullDiskKeepsTheOldFile) {
  const Folder folder;
  const std::string path = folder / "m.hidet";
  model().save(path);
  const std::string old = read_file(path);
  for (const size_t room : {size_t{0}, size_t{1}, size_t{5000}, old.size() / 2, old.size() - 1}) {
    const int status = in_child([&] {
      full_after(room);
      try {
        model().save(path);
      } catch (const Error& e) {
        if (std::string(e.what()).find(path) == std::string::npos) return 50;
        throw;
      }
      return 0;
    });
    EXPECT_EQ(status, static_cast<int>(ErrorCode::io)) << room;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"m.hidet"}) << room;
    EXPECT_TRUE(read_file(path) == old) << room;
  }
  EXPECT_EQ(in_child([&] { return full_after(old.size()), model().save(path), 0; }), 0);
}

TEST(Save, CommandOnAFullDisk) {
  const Folder folder;
  onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
  const std::vector<std::string> compile = {"compile", folder / "net.onnx", "-o",
                                            folder / "out/m.hidet", "-q"};
  ASSERT_EQ(tools_test::hidet(compile).status, 0);
  const std::string old = read_file(folder / "out/m.hidet");
  // The build cache is warm, so that the model is the first thing that does not fit.
  const Ran r = tools_test::hidet(compile, {.prepare = [&] { full_after(old.size() / 2); }});
  EXPECT_EQ(r.status, 7) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr("out/m.hidet"), HasSubstr("cannot write")));
  EXPECT_TRUE(read_file(folder / "out/m.hidet") == old);
  size_t files = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder / "out"))
    files += e.is_regular_file();
  EXPECT_EQ(files, 1u);
}

// A folder that nobody may write in, for root as well: one of /proc.
TEST(Save, ReadOnlyFolder) {
  const Folder folder;
  onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
  std::filesystem::create_directory(folder / "locked");
  std::filesystem::permissions(
      folder / "locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  for (const std::string& out : {std::string("/proc/self/m.hidet"), folder / "locked/m.hidet"}) {
    if (geteuid() == 0 && out[1] != 'p') continue;  // root may write everywhere
    EXPECT_THAT(error_of([&] { model().save(out); }, ErrorCode::io), HasSubstr(out));
    const Ran r = tools_test::hidet({"compile", folder / "net.onnx", "-o", out, "-q"});
    EXPECT_EQ(r.status, 7) << r.err;
    EXPECT_THAT(r.err, HasSubstr(out));
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Save, NamesWithSpacesQuotesAndNewlines) {
  const Folder folder;
  const FlowGraph g = conv_net(ConvWeights(1));
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  for (const std::string& name : {std::string("a b"), std::string("it's \"it\""),
                                  std::string("two\nlines"), std::string("$(x) `y` \\ %s * ?"),
                                  std::string("-o"), std::string("\xc3\xa4\xe2\x82\xac")}) {
    const std::string path = folder / (name + "/" + name + ".hidet");
    onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
    model().save(path);
    expect_same(load_model(path)(x), g(x), name);
    EXPECT_TRUE(can_load(path).ok()) << name;
    const std::string onnx = folder / (name + "/" + name + ".onnx"),
                      out = folder / (name + "/out " + name + ".hidet");
    std::filesystem::copy(folder / "net.onnx", onnx);
    Ran r = tools_test::hidet(
        {"compile", onnx, "-o", out, "-q", "--json", folder / (name + "/c.json")});
    EXPECT_EQ(r.status, 0) << r.err;
    r = tools_test::hidet({"run", out, "-q", "--output-dir", folder / (name + "/y")});
    EXPECT_EQ(r.status, 0) << r.err;
    r = tools_test::hidet({"inspect", folder / (name + "/none.hidet")});
    EXPECT_EQ(r.status, 3);
  }
}

// The build cache and the folder of temporary files have such names too.
TEST(Save, OddCacheAndTemporaryFolders) {
  const Folder folder;
  onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
  const std::string odd = folder / "it's a \"cache\"\n$(here)";
  std::filesystem::create_directory(odd);
  const Ran r = tools_test::hidet({"compile", folder / "net.onnx", "-o", folder / "m.hidet", "-q"},
                                  {.env = {{"HIDET_CACHE_DIR", odd + "/c"}, {"TMPDIR", odd}}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(tools_test::hidet({"run", folder / "m.hidet", "-q"}, {.env = {{"TMPDIR", odd}}}).status,
            0);
}

/// What a damaged file leads to: an error that names the file, or the right answer. Each in a child.
enum Outcome { right = 0, refused = 1, wrong = 2, silent = 3 };
int outcome_of(const std::string& path, const Tensor& x, const std::vector<float>& y,
               Verify verify) {
  try {
    const std::vector<float> got = load_model(path, {.verify = verify})(x).to_vector<float>();
    return got == y ? right : wrong;
  } catch (const Error& e) {
    return std::string(e.what()).find("bad.hidet") == std::string::npos ? silent : refused;
  }
}

// Cut at 200 places and one bit flipped at 200: with the weights checked, never a wrong answer. A batch of files a
// child, so that a crash is seen and a hang is ended.
TEST(Save, DamagedFiles) {
  const Folder folder;
  const std::string good = bytes_of(model().serialize()), path = folder / "bad.hidet";
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  const std::vector<float> y = model()(x).to_vector<float>();
  const int status = in_child([&] {
    alarm(200);
    int result = 0;
    for (size_t i = 0; i < 200; i++) {
      onnx_test::write_file(path, good.substr(0, good.size() * i / 200));
      if (outcome_of(path, x, y, Verify::code) != refused) result |= 1;
    }
    for (size_t i = 0; i < 200; i++) {
      std::string bytes = good;
      bytes[(i * good.size() / 200 + i * 7919) % good.size()] ^= static_cast<char>(1 << (i % 8));
      onnx_test::write_file(path, bytes);
      if (const int o = outcome_of(path, x, y, Verify::full); o != refused && o != right)
        result |= 2;
    }
    return result;
  });
  EXPECT_EQ(status, 0);
}

// A flip in the weights is found by `inspect --verify`, whichever byte it is.
TEST(Save, FlipsInWeightsAreFound) {
  const Folder folder;
  model().save(folder / "good.hidet");
  const std::string good = read_file(folder / "good.hidet");
  EXPECT_EQ(tools_test::hidet({"inspect", folder / "good.hidet", "--verify"}).status, 0);
  const std::vector<Tensor> stored = {read_model(folder / "good.hidet").stored.at(0).data};
  const std::string data(static_cast<const char*>(stored[0].data()),
                         static_cast<size_t>(stored[0].bytes()));
  const size_t begin = good.find(data);
  ASSERT_NE(begin, std::string::npos);
  for (const size_t at : {size_t{0}, data.size() / 2, data.size() - 1}) {
    std::string bytes = good;
    bytes[begin + at] ^= 1;
    onnx_test::write_file(folder / "bad.hidet", bytes);
    EXPECT_EQ(tools_test::hidet({"inspect", folder / "bad.hidet"}).status,
              0);  // weights are not looked at
    const Ran r = tools_test::hidet({"inspect", folder / "bad.hidet", "--verify"});
    EXPECT_EQ(r.status, 3) << at;
    EXPECT_THAT(r.err, AllOf(HasSubstr("bad.hidet"), HasSubstr("weights.npz")));
  }
}

// The same for .onnx files: an import, or an error that says bad file, unsupported or usage; no crash, no hang.
TEST(Save, DamagedOnnxFiles) {
  const Folder folder;
  const std::string good = tools_test::small_net().serialize(), path = folder / "bad.onnx";
  const int status = in_child([&] {
    alarm(200);
    int result = 0;
    const auto attempt = [&](const std::string& bytes) {
      onnx_test::write_file(path, bytes);
      try {
        const FlowGraph g = from_onnx(path);
        (void)optimize(g).text();
      } catch (const Error& e) {
        if (e.code() == ErrorCode::internal) result |= 1;
        if (e.code() != ErrorCode::bad_file && e.code() != ErrorCode::unsupported) result |= 2;
      }
    };
    for (size_t i = 0; i < 200; i++) attempt(good.substr(0, good.size() * i / 200));
    for (size_t i = 0; i < 200; i++) {
      std::string bytes = good;
      bytes[(i * good.size() / 200 + i * 7919) % good.size()] ^= static_cast<char>(1 << (i % 8));
      attempt(bytes);
    }
    return result;
  });
  EXPECT_EQ(status, 0);
}

// An independent reader opens the file, checks every CRC, and finds the entries that artifact readers know.
TEST(Save, PythonChecksEveryCrc) {
  ASSERT_EQ(std::system("python3 -c pass 2>/dev/null"), 0) << "no python3";
  const Folder folder;
  model().save(folder / "m.hidet", {.weights = SaveWeights::both, .save_source = true});
  const std::string script =
      "import zipfile, io, json, sys; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is "
      "None; "
      "n = z.namelist(); assert n[0] == 'meta.json' and len(n) == len(set(n)); "
      "assert all(i.compress_type == 0 for i in z.infolist()); "
      "m = json.loads(z.read('manifest.json'))['entries']; assert sorted(m) == sorted(x for x in n "
      "if x != 'manifest.json'); "
      "assert all(m[x]['bytes'] == z.getinfo(x).file_size for x in m); "
      "meta = json.loads(z.read('meta.json')); assert meta['format'] == 'hidet/1'; t = "
      "meta['targets'][0]; "
      "assert z.read('programs/%s/code.so' % t)[:4] == b'\\x7fELF'; assert "
      "any(x.startswith('source/') for x in n); "
      "json.loads(z.read('programs/%s/graph_execution.json' % t)); "
      "assert zipfile.ZipFile(io.BytesIO(z.read('weights.npz'))).testzip() is None";
  EXPECT_EQ(std::system(("python3 -c \"" + script + "\" " + (folder / "m.hidet")).c_str()), 0);
}

}  // namespace
}  // namespace hidet::test
