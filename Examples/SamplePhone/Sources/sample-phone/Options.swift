import Foundation

/// The command line.
struct Options {
  var gateway = "ws://127.0.0.1:8080/v1/connect"
  var device: String?
  var token: String?
  var folder = NSHomeDirectory() + "/.local/share/sample-phone"
  var isAlone = false
  var answers = false
  var call: String?
  var audio: String?

  struct Problem: Error, CustomStringConvertible { let description: String }

  static let help = """
    sample-phone: the sample app's model without a screen. It prints what a view would show, and takes what a user would do.

      --gateway URL      ws://127.0.0.1:8080/v1/connect by default
      --token FILE       a login token, as `trunkline token` prints it; else the environment's PHONE_TOKEN
      --device ID        this device's id: the token's dev
      --alone            no call screen of a system: the app shows its calls itself. Else calls are the system's, here
                         `trunkline-lab handset --app sample-phone …`
      --answer           alone: answers what rings
      --call NUMBER      calls once online
      --microphone FILE  alone: what is said, over and over: 16-bit mono at 8 kHz without a header
      --folder PATH      where settings and recents are kept

    Orders on standard input, one a line: call NUMBER · answer · decline · end · hold on|off · mute on|off · digits 12# ·
    transfer NUMBER · dnd on|off · from NUMBER · recents · logout · quit
    """

  /// Nil: `--help`.
  init?(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let option = rest.popFirst() {
      func value() throws -> String {
        guard let value = rest.popFirst() else { throw Problem(description: "\(option) wants a value") }
        return value
      }
      switch option {
      case "--help", "-h": return nil
      case "--gateway": gateway = try value()
      case "--token": token = try Self.text(of: try value())
      case "--device": device = try value()
      case "--alone": isAlone = true
      case "--answer": answers = true
      case "--call": call = try value()
      case "--microphone": audio = try value()
      case "--folder": folder = try value()
      default: throw Problem(description: "no option \(option); --help names them")
      }
    }
    token = token ?? ProcessInfo.processInfo.environment["PHONE_TOKEN"]
  }

  private static func text(of path: String) throws -> String {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw Problem(description: "\(path) cannot be read")
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
