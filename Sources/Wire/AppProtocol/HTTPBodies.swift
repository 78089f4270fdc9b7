#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// `POST /v1/calls/<id>/reject`: the same objects as on the socket, as HTTP bodies.

extension CallReject {
  /// The `d` of `call.reject`; an empty body is one without fields. Nil for anything that is no such object.
  public init?(body: [UInt8]) {
    if body.isEmpty {
      self.init()
      return
    }
    guard (try? checkFrame(body)) != nil, let reject = try? JSONDecoder().decode(CallReject.self, from: Data(body)) else {
      return nil
    }
    self = reject
  }

  /// The body of the request, keys sorted.
  public var json: [UInt8] { jsonBytes(self) }
}

extension Failure {
  /// The `d` of `err`, keys sorted.
  public var json: [UInt8] { jsonBytes(self) }
}
