import Glibc

/// Concealment by ITU-T G.711 Appendix I as libspandsp has it (`plc_rx`, `plc_fillin`), opened at run time.
public struct AppendixI: ~Copyable {
  private typealias Make = @convention(c) (OpaquePointer?) -> OpaquePointer?
  private typealias Work = @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int16>?, Int32) -> Int32
  private typealias Free = @convention(c) (OpaquePointer?) -> Int32
  private struct Library: @unchecked Sendable {
    let make: Make
    let received: Work
    let fill: Work
    let free: Free
  }
  private static let library: Library? = {
    guard let handle = dlopen("libspandsp.so.2", RTLD_NOW), let make = dlsym(handle, "plc_init"),
      let received = dlsym(handle, "plc_rx"), let fill = dlsym(handle, "plc_fillin"), let free = dlsym(handle, "plc_free")
    else { return nil }
    return Library(
      make: unsafeBitCast(make, to: Make.self), received: unsafeBitCast(received, to: Work.self),
      fill: unsafeBitCast(fill, to: Work.self), free: unsafeBitCast(free, to: Free.self))
  }()

  private let library: Library
  private let state: OpaquePointer

  /// nil where libspandsp is not installed.
  public init?() {
    guard let library = Self.library, let state = library.make(nil) else { return nil }
    (self.library, self.state) = (library, state)
  }

  deinit { _ = library.free(state) }

  /// Takes audio that came; after a loss its beginning is changed.
  public func received(_ samples: inout [Int16]) {
    samples.withUnsafeMutableBufferPointer { _ = library.received(state, $0.baseAddress, Int32($0.count)) }
  }

  /// So much made-up audio.
  public func conceal(_ count: Int) -> [Int16] {
    var samples = [Int16](repeating: 0, count: count)
    samples.withUnsafeMutableBufferPointer { _ = library.fill(state, $0.baseAddress, Int32($0.count)) }
    return samples
  }
}
