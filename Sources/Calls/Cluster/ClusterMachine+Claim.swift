import CallModel
import TrunklineBytes

// `call.start`: which node owns the call, and whether the limits admit it.

extension ClusterMachine {
  /// Asks for the owner first and for the limits only afterwards: another node's call with this UUID must not be changed.
  mutating func claim(_ claim: ClaimQuestion, _ step: inout Step) {
    var question = questions.new(.claim(claim))
    let isAsked = ask(
      .claimStart(claim.call, device: claim.device, at: incarnation), .start, call: claim.call, of: &question, &step)
    if !isAsked { return continueClaim(claim, question, &step) }
    pose(question, &step)
  }

  /// Checks the limits for a call that this node owns, or whose owner no answer has named.
  mutating func continueClaim(_ claim: ClaimQuestion, _ question: Question, _ step: inout Step) {
    var question = question
    question.hasStart = true
    enter(claim.call, [claim.device.user], .outgoing, &question)
    if let most = claim.mostOfTrunk { count(claim.call, on: claim.trunk, most: most, &question, &step) }
    if let most = claim.mostPerHour {
      ask(.consumeQuota(user: claim.device.user, most: most), .hour, call: claim.call, of: &question, &step)
    }
    requestLocations(claim.call, of: [claim.device.user], direction: .outgoing, &question, &step)
    pose(question, &step)
  }

  mutating func answer(_ claim: ClaimQuestion, _ question: Question, _ step: inout Step) {
    var question = question
    if !question.hasStart, question.verdicts[.start] != false {
      // No answer named the owner in time: the call is made, and is entered when the shared store answers again.
      enter(claim.call, [claim.device.user], .outgoing, &question)
      if claim.mostOfTrunk != nil { count(claim.call, claim.trunk, &question) }
    }
    if question.verdicts[.start] == false, let holder = question.holder {
      step.statistics.claims[.elsewhere, default: 0] += 1
      undo(question, claim.call, &step)
      let node = (peers[holder] ?? suspects[holder]?.lease)?.url
      return step.actions.append(.claimed(claim.call, .atOtherNode(holder.node, url: node)))
    }
    let user = claim.device.user
    var reason = refusal(
      claim.call, users: [user], trunk: claim.mostOfTrunk.map { (claim.trunk, $0) }, most: claim.mostOfUser,
      mostOutgoing: claim.mostOutgoing, question, &step)
    if reason == nil, question.verdicts[.hour] == false {
      step.statistics.userRefusals += 1
      reason = .userRate
    }
    if let reason {
      step.statistics.claims[.refused, default: 0] += 1
      undo(question, claim.call, &step)
      return step.actions.append(.claimed(claim.call, .refused(reason)))
    }
    markUnanswered(question, claim.call, &step)
    step.statistics.claims[question.verdicts[.start] == nil ? .unknown : .here, default: 0] += 1
    step.actions.append(.claimed(claim.call, .granted))
  }
}
