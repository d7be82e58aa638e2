// Asks the dynamic linker for the module's place in memory, and addr2line for source lines; see
// source_location.h.
#include "source_location.h"

#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "machine.h"

extern char** environ;

namespace needle::emulator {
namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

struct Module {
  std::uintptr_t base = 0;
  Range all;
  Range code;
  std::string path;
};

std::string program_path() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

int find_module(dl_phdr_info* info, std::size_t, void* found) {
  Module module;
  module.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const Range range{module.base + header.p_vaddr, module.base + header.p_vaddr + header.p_memsz};
    if (module.all.end == 0) module.all.begin = range.begin;
    module.all.end = range.end;
    if ((header.p_flags & PF_X) != 0) module.code = range;
  }
  if (!module.all.contains(&machine)) return 0;
  module.path = info->dlpi_name[0] != '\0' ? info->dlpi_name : program_path();
  *static_cast<Module*>(found) = module;
  return 1;
}

const Module& this_module() {
  static const Module module = [] {
    Module found;
    dl_iterate_phdr(find_module, &found);
    return found;
  }();
  return module;
}

std::uintptr_t offset_of(const void* code) {
  return reinterpret_cast<std::uintptr_t>(code) - this_module().base;
}

// Runs a program and returns what it prints; empty if that fails.
std::string output_of(char* const* command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool spawned = posix_spawnp(&child, command[0], &actions, nullptr, command, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  char buffer[512];
  for (ssize_t count; spawned && (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<std::size_t>(count));
  close(ends[0]);
  if (spawned) waitpid(child, nullptr, 0);
  return output;
}

SourcePlace ask_addr2line(const void* code) {
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%jx", static_cast<std::uintmax_t>(offset_of(code)));
  char program[] = "addr2line";
  char option[] = "-e";
  std::string path = this_module().path;
  char* const command[] = {program, option, path.data(), offset, nullptr};
  const std::string answer = output_of(command);  // "/folder/k.cu:4 (discriminator 2)\n"
  const std::size_t colon = answer.rfind(':');
  if (colon == std::string::npos || answer[0] == '?') return {};
  const int line = std::atoi(answer.c_str() + colon + 1);
  if (line <= 0) return {};
  return {answer.substr(0, colon), line};
}

}  // namespace

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

SourcePlace find_source_place(const void* code) {
  static std::mutex mutex;
  static std::map<const void*, SourcePlace> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace(code);
  if (is_new) entry->second = ask_addr2line(code);
  return entry->second;
}

std::string source_place(const void* code) {
  if (code == nullptr) return "an unknown place";
  const SourcePlace place = find_source_place(code);
  if (!place.file.empty()) return file_name(place.file) + ":" + std::to_string(place.line);
  char text[32];
  if (!in_module_code(code)) {
    std::snprintf(text, sizeof text, "%p", code);
    return std::string("code of another library at ") + text;
  }
  std::snprintf(text, sizeof text, "+0x%jx", static_cast<std::uintmax_t>(offset_of(code)));
  return file_name(this_module().path) + text;
}

bool in_module(const void* address) { return this_module().all.contains(address); }
bool in_module_code(const void* address) { return this_module().code.contains(address); }
const char* module_base() { return reinterpret_cast<const char*>(this_module().base); }

ModuleRange module_range() {
  const Range& all = this_module().all;
  return {reinterpret_cast<const char*>(all.begin), all.end - all.begin};
}

std::string place_text(const Place& place) {
  return file_name(place.file) + ":" + std::to_string(place.line);
}

}  // namespace needle::emulator
