// What the SDK uses of the unified log.

/// os/log.h
public struct OSLogType: Sendable, Equatable {
  let name: String
  public static let (debug, info, `default`, error) = (
    OSLogType(name: "debug"), OSLogType(name: "info"), OSLogType(name: "default"), OSLogType(name: "error")
  )
}

/// developer.apple.com/documentation/os/oslogprivacy
public struct OSLogPrivacy: Sendable {
  let isShown: Bool
  public static let (`public`, `private`) = (OSLogPrivacy(isShown: true), OSLogPrivacy(isShown: false))
}

/// developer.apple.com/documentation/os/oslogmessage
public struct OSLogMessage: ExpressibleByStringInterpolation {
  public struct Interpolation: StringInterpolationProtocol {
    var text = ""
    public init(literalCapacity: Int, interpolationCount: Int) {}
    public mutating func appendLiteral(_ literal: String) { text += literal }
    public mutating func appendInterpolation(_ value: @autoclosure () -> String, privacy: OSLogPrivacy = .private) {
      text += privacy.isShown ? value() : "<private>"
    }
  }
  let text: String
  public init(stringLiteral value: String) { text = value }
  public init(stringInterpolation: Interpolation) { text = stringInterpolation.text }
}

/// developer.apple.com/documentation/os/logger
public struct Logger: Sendable {
  let name: String
  public init(subsystem: String, category: String) { name = "\(subsystem)/\(category)" }
  public func log(level: OSLogType, _ message: OSLogMessage) { print("\(name) \(level.name): \(message.text)") }
}
