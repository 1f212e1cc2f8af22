// Marks what the shared library exports. Everything else in it is hidden.
#pragma once

#define NEXAR_API __attribute__((visibility("default")))
