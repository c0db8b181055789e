//! However the program ends, the terminal is as it was.

use rustix::process::Signal;

use crate::{
    SIZE, Terminal, manual,
    terminal::{hung_up, lines},
};

/// While it runs, the terminal is raw and on its alternate screen, without a cursor.
#[test]
fn meanwhile_the_terminal_is_the_programs() {
    let terminal = manual();
    let frame = terminal.frame_with(&["renewal"]);
    assert!(frame.alternate_screen() && frame.hide_cursor() && terminal.is_raw());
    terminal.press("q");
    let end = terminal.end();
    end.has_left_nothing();
    assert_eq!(end.code, Some(0));
}

/// Each key that ends it, in the middle of its work on the system clock.
#[test]
fn keys_end_it() {
    for key in ["q", "\x03", "\x04", "\x1b"] {
        let terminal = Terminal::start("top", &[], SIZE);
        terminal.frame_with(&["renewal"]);
        terminal.press(key);
        let end = terminal.end();
        end.has_left_nothing();
        assert_eq!(end.code, Some(0), "{key:?}");
    }
}

/// Each signal that ends it.
#[test]
fn signals_end_it() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let terminal = Terminal::start("top", &[], SIZE);
        terminal.frame_with(&["renewal"]);
        terminal.signal(signal);
        let end = terminal.end();
        end.has_left_nothing();
        assert_eq!(end.code, Some(0), "{signal:?}");
    }
}

/// A signal that comes before the first frame ends it as well, and whatever it has done by then is undone.
#[test]
fn an_early_signal_ends_it() {
    for wait in 0..20 {
        let terminal = Terminal::start("top", &["--manual", "--for", "10s"], SIZE);
        // Before the handler is there, the signal ends the process by itself, and nothing has been done.
        std::thread::sleep(std::time::Duration::from_micros(wait * 300));
        terminal.signal(Signal::TERM);
        let end = terminal.end();
        let written = String::from_utf8_lossy(&end.written);
        assert!(matches!(end.code, None | Some(0)), "{:?}: {written}", end.code);
        end.has_left_nothing();
    }
}

/// The time limit ends it.
#[test]
fn time_ends_it() {
    let is_drawn = |time| {
        let end = Terminal::start("top", &["--for", time], SIZE).end();
        end.has_left_nothing();
        assert_eq!(end.code, Some(0));
        String::from_utf8_lossy(&end.written).contains("renewal")
    };
    // A machine may stand still until the time is over.
    assert!(["300ms", "1s", "3s", "9s", "27s"].into_iter().any(is_drawn), "it was never drawn");
}

/// A panic of the view restores the terminal first, so that its message can be read; and it is no success.
#[test]
fn a_panic_restores_the_terminal() {
    let terminal = manual();
    terminal.press("!");
    let end = terminal.end();
    end.has_restored();
    let text = lines(&end.screen).join("\n");
    assert!(text.contains("panicked at") && text.contains("you have asked for it"), "{text}");
    assert_eq!(end.code, Some(101));
}

/// The panics of tasks are shown by the view, and by nothing else: no line of theirs is on the screen, during or after it.
#[test]
fn panics_of_tasks_do_not_write_on_the_screen() {
    let terminal = manual();
    terminal.press(&" ".repeat(10));
    let frame = terminal.frame_with(&["last failure mail, run 16: the server does not answer"]);
    let lines = lines(&frame);
    assert_eq!(
        lines.iter().filter(|line| line.contains("does not answer")).count(),
        1,
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line.contains("panicked")), "{lines:?}");
    terminal.press("q");
    let end = terminal.end();
    end.has_left_nothing();
    assert!(!String::from_utf8_lossy(&end.written).contains("panicked"));
}

/// When the terminal goes, the program goes.
#[test]
fn it_goes_with_its_terminal() {
    let code = hung_up("top", &[], "renewal");
    assert!(matches!(code, Some(0 | 1)), "it ends by itself: {code:?}");
}
