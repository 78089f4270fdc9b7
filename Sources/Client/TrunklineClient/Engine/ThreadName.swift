package import Foundation

/// A thread that debuggers and `top` know by its name.
package func namedThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Thread {
  let thread = Thread {
    #if os(Linux)
      // Foundation loses a name that is set before the thread runs, and at times one that is set at its start
      if let file = fopen("/proc/thread-self/comm", "w") {
        fputs(name, file)
        fclose(file)
      }
    #endif
    body()
  }
  thread.name = name
  return thread
}
