// The version of nexar, for the preprocessor. This file is the one place where it is written: the build reads it from here.
#pragma once

#define NEXAR_VERSION_MAJOR 0
#define NEXAR_VERSION_MINOR 1
#define NEXAR_VERSION_PATCH 0
#define NEXAR_VERSION "0.1.0"
