// SPDX-License-Identifier: Apache-2.0
// Since clang 15 the symbol of a main() with arguments is __main_argc_argv; Emscripten 3.1.6 calls `main`.
extern "C" int __main_argc_argv(int count, char** arguments);
extern "C" int named_main(int count, char** arguments) __asm__("main");
int named_main(int count, char** arguments) { return __main_argc_argv(count, arguments); }
