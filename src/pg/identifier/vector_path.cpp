// Reads the setting randflake.vector_path.

#include "pg/identifier/vector_path.h"

using namespace randflake;

VectorPath vector_path;

static char* setting_vector_path;
static constexpr char kAutomatic[] = "auto";

const char* vector_path_name() { return vector_path.name; }

void vector_path_define_setting() {
    DefineCustomStringVariable(
        "randflake.vector_path", "Vector instructions that encrypt identifiers.",
        "auto, avx512, avx2, baseline or plain. All give the same identifiers; auto takes the "
        "widest this processor has. For tests and for processors with a flaw.",
        &setting_vector_path, kAutomatic, PGC_POSTMASTER, GUC_NOT_IN_SAMPLE, nullptr, nullptr,
        nullptr);
}

void vector_path_choose() {
    Assert(process_shared_preload_libraries_in_progress);
    const VectorPaths list = ListVectorPaths();
    const bool automatic = strcmp(setting_vector_path, kAutomatic) == 0;
    for (int i = 0; i < list.count; i++) {
        const VectorPath& path = list.paths[i];
        if (path.supported && (automatic || strcmp(setting_vector_path, path.name) == 0)) {
            vector_path = path;
            return;
        }
    }
    ereport(FATAL, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for parameter \"randflake.vector_path\": \"%s\"",
                           setting_vector_path),
                    errdetail("This processor supports no vector path of that name."),
                    errhint("Set \"randflake.vector_path\" to \"auto\".")));
}
