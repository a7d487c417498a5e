// Which of the cipher's vector paths this server runs.

#ifndef RANDFLAKE_PG_IDENTIFIER_VECTOR_PATH_H
#define RANDFLAKE_PG_IDENTIFIER_VECTOR_PATH_H

#include "pg/base/pg.h"

#include "core/identifier/cipher_batch.h"

// Chosen when the library is preloaded.
extern randflake::VectorPath vector_path;

const char* vector_path_name();

void vector_path_define_setting();

// Chooses the path; FATAL if randflake.vector_path names one this processor lacks.
void vector_path_choose();

#endif
