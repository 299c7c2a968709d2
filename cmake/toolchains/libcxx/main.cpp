// Since clang 15 a main() with arguments is named by them; Emscripten 3.1.6 asks for one by the name of C.
extern "C" int __main_argc_argv(int count, char** arguments);
extern "C" int named_main(int count, char** arguments) __asm__("main");
int named_main(int count, char** arguments) { return __main_argc_argv(count, arguments); }
