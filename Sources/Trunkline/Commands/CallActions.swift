import ArgumentParser
import CallFlow
import CallModel

/// `trunkline calls …`: actions of the admin API on a call (docs/integrate/control.md).
extension Calls {
  struct Make: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a call for a user: the user's devices ring, then the number is called.",
      discussion: """
        With --first number the number is called at once. The party who answers hears ringback while the user's devices ring.

        EXAMPLES:
          trunkline calls make alice +4930123456
          trunkline calls make alice +4930123456 --from +15551230002 --first number
        """)
    @Argument(help: "The user.") var user: String
    @Argument(help: "The number, as the user could dial it.") var number: String
    @Option(help: ArgumentHelp("One of the user's numbers.", valueName: "number")) var from: String?
    @Option(help: "The party that is called first: user or number.") var first = OriginateRequest.First.user
    @OptionGroup var endpoint: Endpoint

    func run() throws {
      var body = ["user": user, "to": number]
      if let from { body["from"] = from }
      if first != .user { body["first"] = first.rawValue }
      try endpoint.post("/v1/calls", body)
    }
  }

  struct Hold: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Holds a call on behalf of its app.")
    @Argument(help: "The call's id.") var call: String
    @Flag(help: "Resume the call.") var off = false
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call.percentEncoded)/hold", on: !off) }
  }

  struct Mute: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Mutes the app of a call toward the trunk.")
    @Argument(help: "The call's id.") var call: String
    @Flag(help: "Unmute the call.") var off = false
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call.percentEncoded)/mute", on: !off) }
  }

  struct Digits: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Sends digits to the trunk.")
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "0-9, A-D, * and #.") var digits: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call.percentEncoded)/digits", ["digits": digits]) }
  }

  struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Plays a file of admin.play_folder to the trunk instead of the app's audio, or stops the playback.",
      discussion: """
        EXAMPLES:
          trunkline calls play 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 notice.wav
          trunkline calls play 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --off
        """)
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "The file's name, without a path.") var file: String?
    @Flag(help: "Stop the playback.") var off = false
    @OptionGroup var endpoint: Endpoint

    func validate() throws {
      guard (file == nil) == off else {
        throw ValidationError("name a file in admin.play_folder, or give --off to stop the playback")
      }
    }

    func run() throws {
      let path = "/v1/calls/\(call.percentEncoded)/play"
      if let file { try endpoint.post(path, ["file": file]) } else { try endpoint.post(path, on: false) }
    }
  }

  struct Record: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Records a connected call, or ends its recording.",
      discussion: """
        The configuration needs `recording:`, which sets the folder of the files (docs/integrate/recording.md).

        EXAMPLES:
          trunkline calls record 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11
          trunkline calls record 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --off
        """)
    @Argument(help: "The call's id.") var call: String
    @Flag(help: "End the recording.") var off = false
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call.percentEncoded)/record", on: !off) }
  }

  struct Stream: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Connects an unanswered incoming call to a program over a WebSocket.",
      discussion: """
        The gateway opens the WebSocket; its messages: docs/integrate/media-streams.md. The devices stop ringing. The configuration has to list
        the host: in a route's stream, or in routes.stream_hosts.

        EXAMPLES:
          trunkline calls stream 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 wss://bot.example.com/call
          trunkline calls stream 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 ws://127.0.0.1:8080/ --format pcm16
        """)
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "wss://…, or ws://… of the gateway's machine.") var url: String
    @Option(help: "The audio's format: mulaw, pcm8 or pcm16.") var format: StreamTarget.Format?
    @OptionGroup var endpoint: Endpoint

    func validate() throws {
      guard StreamURL(url) != nil else {
        throw ValidationError("\(url): the URL must begin with wss://, or with ws:// for the gateway's own machine")
      }
    }

    func run() throws {
      var body = ["url": url]
      if let format { body["format"] = format.rawValue }
      try endpoint.post("/v1/calls/\(call.percentEncoded)/stream", body)
    }
  }

  struct Transfer: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Transfers a connected call, by REFER to its trunk.")
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "The number to transfer to.") var number: String?
    @Option(help: ArgumentHelp("The user to transfer to, at the user's first number.", valueName: "user")) var user: String?
    @Option(help: ArgumentHelp("A call to join: connected, of the same user and trunk.", valueName: "call")) var with: String?
    @OptionGroup var endpoint: Endpoint

    func validate() throws {
      guard [number, user, with].compactMap(\.self).count == 1 else {
        throw ValidationError("give exactly one of a number, --user and --with")
      }
    }

    func run() throws {
      let body = ["to": number, "user": user, "call": with].compactMapValues(\.self)
      try endpoint.post("/v1/calls/\(call.percentEncoded)/transfer", body)
    }
  }

  struct HangUp: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "hangup", abstract: "Ends a call.")
    @Argument(help: "The call's id.") var call: String
    @Option(
      help: ArgumentHelp(
        "The end reason: localEnd; for an unanswered call also busy, declined, unanswered, notFound or forbidden.",
        valueName: "reason"))
    var reason: String?
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call.percentEncoded)/hangup", reason.map { ["reason": $0] } ?? [:]) }
  }
}

extension StreamTarget.Format: ExpressibleByArgument {}
extension OriginateRequest.First: ExpressibleByArgument {}
