// What each test needs. The programs that test/t builds have no GoogleTest, and need standard.h.

#pragma once

#include <gtest/gtest.h>

#include "standard.h"
