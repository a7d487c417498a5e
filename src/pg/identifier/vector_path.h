// Chooses the server's vector path of the cipher.

#pragma once

#include "pg/base/pg.h"

#include "core/identifier/cipher_batch.h"

// Set when the server preloads the library.
extern randflake::VectorPath vector_path;

const char* vector_path_name();

void vector_path_define_setting();

// Chooses the path; FATAL if this processor lacks the one in randflake.vector_path.
void vector_path_choose();
