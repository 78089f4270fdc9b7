import CTrunklineLinux
import Glibc

/// The cores a load run may use.
enum Cores {
  /// Cores of the calling thread, ascending.
  static var allowed: [Int32] {
    var cores = [Int32](repeating: 0, count: 1_024)
    let count = clx_get_affinity(&cores, Int32(cores.count))
    return Array(cores.prefix(Int(max(0, count))))
  }

  /// Binds the calling thread, and threads and processes that it starts from now on. False if that is not permitted.
  @discardableResult static func bind(to cores: [Int32]) -> Bool {
    !cores.isEmpty && cores.withUnsafeBufferPointer { clx_set_affinities($0.baseAddress, Int32($0.count)) } == 0
  }
}
