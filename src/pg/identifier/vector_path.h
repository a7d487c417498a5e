// Chooses the vector instructions that encrypt identifiers.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/cipher_batch.h"

// This is set when the server preloads the library.
extern randflake::VectorPath vector_path;

const char* vector_path_name();

void vector_path_define_setting();

// Chooses the path. Raises FATAL if this processor does not support the configured path.
void vector_path_choose();
