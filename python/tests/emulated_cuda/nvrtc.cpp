// libnvrtc for tests: compiles a kernel for the emulated device, with the system's C++ compiler.
//
// EMULATED_NVRTC_FAIL=TEXT makes every compilation fail with TEXT in the log.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <unistd.h>

namespace {

struct Program {
    std::string source, log, code;
};

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

// The source behind `simt.h`, with an entry for each kernel.
std::string complete(const std::string& source) {
    std::string text = "#include \"" EMULATED_CUDA_FOLDER "/simt.h\"\n" + source + "\n";
    std::regex kernel("extern \"C\" __global__ void (?:__launch_bounds__\\([^)]*\\) )?(\\w+)\\(");
    for (std::sregex_iterator i(source.begin(), source.end(), kernel), end; i != end; ++i) {
        text += "SIMT_KERNEL(" + (*i)[1].str() + ")\n";
    }
    return text;
}

void copy_out(const std::string& from, char* to) { from.copy(to, from.size()); }

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char**, const char**) {
    *program = new Program{source, "", ""};
    return 0;
}

int nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char** options) {
    if (const char* text = getenv("EMULATED_NVRTC_FAIL")) {
        program->log = text;
        return 6;
    }
    char folder[] = "/tmp/emulated-cuda-XXXXXX";
    if (!mkdtemp(folder)) return 7;
    std::string base = std::string(folder) + "/kernel";
    std::ofstream(base + ".cpp") << complete(program->source);
    std::string command = "c++ -std=c++17 -O1 -U_FORTIFY_SOURCE -w -fPIC -shared -ffp-contract=off -Wl,-Bsymbolic";
    for (int i = 0; i < count; i++) {
        std::string option = options[i];
        if (option.rfind("-D", 0) == 0) command += " '" + option + "'";
    }
    command += " -o " + base + ".so " + base + ".cpp 2> " + base + ".log";
    int failed = system(command.c_str());
    program->log = read(base + ".log");
    program->code = read(base + ".so");
    for (const char* end : {".cpp", ".so", ".log"}) unlink((base + end).c_str());
    rmdir(folder);
    return failed ? 6 : 0;
}

int nvrtcGetProgramLogSize(Program* program, size_t* size) {
    *size = program->log.size() + 1;
    return 0;
}

int nvrtcGetProgramLog(Program* program, char* log) {
    copy_out(program->log + '\0', log);
    return 0;
}

int nvrtcGetCUBINSize(Program* program, size_t* size) {
    *size = program->code.size();
    return 0;
}

int nvrtcGetCUBIN(Program* program, char* code) {
    copy_out(program->code, code);
    return 0;
}
}
