# Writes OUTPUT, a C++ file that defines kBuildId: a digest of the files in SOURCES. Run by CMakeLists.txt.
set(digests "")
foreach(source IN LISTS SOURCES)
  file(SHA256 "${source}" digest)
  string(APPEND digests "${digest}")
endforeach()
string(SHA256 build_id "${digests}")
string(SUBSTRING "${build_id}" 0 12 build_id)
file(WRITE "${OUTPUT}" "namespace needle {
extern const char* const kBuildId;
const char* const kBuildId = \"${build_id}\";
}  // namespace needle
")
