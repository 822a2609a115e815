// Entry point of a model that Python loads as a shared library (see sim/host.py).

#include <cstdlib>

int main(int argc, char** argv);

// The simulation ends by finalizing Python, so there is nothing left to return to.
extern "C" void run_model(int argc, char** argv) { std::exit(main(argc, argv)); }
