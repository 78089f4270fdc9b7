import ArgumentParser

/// `trunkline calls …`: what the admin API does with a call (docs/control.md).
extension Calls {
  struct Make: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a call for a user: the user's devices ring, then the number is called.")
    @Argument(help: "The user.") var user: String
    @Argument(help: "The number, as the user could dial it.") var number: String
    @Option(help: ArgumentHelp("One of the user's numbers.", valueName: "number")) var from: String?
    @OptionGroup var endpoint: Endpoint

    func run() throws {
      var body = ["user": user, "to": number]
      if let from { body["from"] = from }
      try endpoint.post("/v1/calls", body)
    }
  }

  struct Hold: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Holds a call, as the app that has it would.")
    @Argument(help: "The call's id.") var call: String
    @Flag(help: "Resume it.") var off = false
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call)/hold", on: !off) }
  }

  struct Mute: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Silences the app of a call toward the trunk.")
    @Argument(help: "The call's id.") var call: String
    @Flag(help: "Not any more.") var off = false
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call)/mute", on: !off) }
  }

  struct Digits: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Sends digits to the trunk.")
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "0-9, A-D, * and #.") var digits: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call)/digits", ["digits": digits]) }
  }

  struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Plays a file of admin.play_folder to the trunk, in place of the app.")
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "Its name.") var file: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call)/play", ["file": file]) }
  }

  struct Transfer: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Transfers a connected call, by REFER to its trunk.")
    @Argument(help: "The call's id.") var call: String
    @Argument(help: "The number that it goes to.") var number: String?
    @Option(help: ArgumentHelp("A user, at the user's first number.", valueName: "user")) var user: String?
    @Option(help: ArgumentHelp("Another connected call of the same user and trunk.", valueName: "call")) var with: String?
    @OptionGroup var endpoint: Endpoint

    func validate() throws {
      guard [number, user, with].compactMap(\.self).count == 1 else {
        throw ValidationError("one of a number, --user and --with")
      }
    }

    func run() throws {
      let body = ["to": number, "user": user, "call": with].compactMapValues(\.self)
      try endpoint.post("/v1/calls/\(call)/transfer", body)
    }
  }

  struct HangUp: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "hangup", abstract: "Ends a call.")
    @Argument(help: "The call's id.") var call: String
    @Option(
      help: ArgumentHelp(
        "localEnd; of a call that waits for an answer also busy, declined, unanswered, notFound or forbidden.",
        valueName: "reason"))
    var reason: String?
    @OptionGroup var endpoint: Endpoint

    func run() throws { try endpoint.post("/v1/calls/\(call)/hangup", reason.map { ["reason": $0] } ?? [:]) }
  }
}
