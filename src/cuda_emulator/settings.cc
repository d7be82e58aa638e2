// Reads the environment's settings; see settings.h.
#include "settings.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "cuda_emulator/launch.h"

namespace needle::emulator {
namespace {

constexpr double kMostSeconds = 1e6;

[[noreturn]] void refuse(const char* variable, const std::string& value, const char* rule) {
  throw KernelError("setting", std::string("CUDA emulator: ") + variable + "=" + value +
                                   " means nothing; " + rule);
}

// Returns whether the text is one whole number.
bool read_number(const char* text, std::uint64_t& number) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  errno = 0;
  number = std::strtoull(text, &end, 10);
  return *end == '\0' && errno == 0;
}

void read_order(const std::string& text, Settings& settings) {
  if (text == "forward") {
    settings.order = Settings::Order::kForward;
  } else if (text == "reverse") {
    settings.order = Settings::Order::kReverse;
  } else if (text.rfind("random:", 0) == 0 && read_number(text.c_str() + 7, settings.seed)) {
    settings.order = Settings::Order::kRandom;
  } else {
    refuse("NEEDLE_EMULATOR_ORDER", text, "forward, reverse and random:<seed> do");
  }
}

void read_races(const std::string& text, Settings& settings) {
  if (text == "all") {
    settings.races = Settings::Races::kAll;
  } else if (text == "shared") {
    settings.races = Settings::Races::kShared;
  } else if (text == "off") {
    settings.races = Settings::Races::kOff;
  } else {
    refuse("NEEDLE_EMULATOR_RACES", text, "all, shared and off do");
  }
}

void read_seconds(const std::string& text, Settings& settings) {
  char* end = nullptr;
  settings.seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(settings.seconds > 0 && settings.seconds <= kMostSeconds))
    refuse("NEEDLE_EMULATOR_SECONDS", text, "a positive number of seconds does");
}

void read_steps(const std::string& text, Settings& settings) {
  if (!read_number(text.c_str(), settings.steps))
    refuse("NEEDLE_EMULATOR_STEPS", text, "a whole number does, 0 for no limit");
}

void read_returned(const std::string& text, Settings& settings) {
  if (text == "allow") {
    settings.returned_may_miss_barrier = true;
  } else if (text != "error") {
    refuse("NEEDLE_EMULATOR_RETURNED", text, "error and allow do");
  }
}

}  // namespace

Settings read_settings() {
  struct Variable {
    const char* name;
    void (*read)(const std::string&, Settings&);
  };
  static constexpr Variable kVariables[] = {
      {"NEEDLE_EMULATOR_ORDER", read_order},       {"NEEDLE_EMULATOR_RACES", read_races},
      {"NEEDLE_EMULATOR_SECONDS", read_seconds},   {"NEEDLE_EMULATOR_STEPS", read_steps},
      {"NEEDLE_EMULATOR_RETURNED", read_returned},
  };
  Settings settings;
  for (const Variable& variable : kVariables) {
    if (const char* text = std::getenv(variable.name)) variable.read(text, settings);
  }
  return settings;
}

}  // namespace needle::emulator
