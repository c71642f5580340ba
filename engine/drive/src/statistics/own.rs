//! Counters that only one mode of the load has, such as the counters of replays. The thread that counts is compiled for
//! its mode and knows their type. The code that reads a report is the same for all modes, and gets the counters by
//! their type with [`Own::get`].

use std::any::Any;
use std::fmt::Debug;

/// The counters that only one mode of the load has, either for a period (one second, or one round of slices) or for a
/// whole run.
pub trait ModeCounts: Any + Clone + Debug + Default + Send {
    /// Adds the counters that the same mode has for another period or in another thread.
    fn merge(&mut self, other: &Self);

    /// Returns a copy of the counters in which all counts are zero.
    fn emptied(&self) -> Self {
        Self::default()
    }

    /// Finishes the counters of a period, for example by sorting entries by time. Called when all threads have reported
    /// the period.
    fn complete(&mut self) {}
}

/// The types of the counters that a mode of the load has in addition to the counters of all modes.
pub trait Counting {
    /// The mode's counters of one period.
    type Counts: ModeCounts;
    /// The mode's counters of the whole run.
    type Totals: ModeCounts;
}

/// The counters of a mode that has no counters of its own.
impl ModeCounts for () {
    fn merge(&mut self, (): &Self) {}
}

/// The additional counters of the load's mode, with their type erased. Empty until the first counters are stored.
#[derive(Debug, Default)]
pub struct Own(Option<Box<dyn AnyCounts>>);

impl Own {
    /// Stores the counters of a mode, and erases their type.
    pub fn new<T: ModeCounts>(counts: T) -> Self {
        Self(Some(Box::new(counts)))
    }

    /// Returns the counters, if they have the type `T`.
    pub fn get<T: ModeCounts>(&self) -> Option<&T> {
        self.0.as_deref()?.as_any().downcast_ref()
    }

    /// Returns a mutable reference to the counters, if they have the type `T`.
    pub fn get_mut<T: ModeCounts>(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()?.as_any_mut().downcast_mut()
    }

    /// Adds the counters that the same mode has for another period or in another thread.
    pub(crate) fn merge(&mut self, other: &Own) {
        let Some(theirs) = other.0.as_deref() else { return };
        match &mut self.0 {
            Some(mine) => mine.merge_any(theirs.as_any()),
            None => self.0 = Some(theirs.cloned()),
        }
    }

    /// Finishes the counters of a period that all threads have reported.
    pub(crate) fn complete(&mut self) {
        if let Some(counts) = self.0.as_deref_mut() {
            counts.complete_any();
        }
    }
}

impl Clone for Own {
    fn clone(&self) -> Self {
        Self(self.0.as_deref().map(AnyCounts::cloned))
    }
}

/// [`ModeCounts`] as a trait object, for code that does not know the mode of the load.
trait AnyCounts: Debug + Send {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn cloned(&self) -> Box<dyn AnyCounts>;
    fn merge_any(&mut self, other: &dyn Any);
    fn complete_any(&mut self);
}

impl<T: ModeCounts> AnyCounts for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn AnyCounts> {
        Box::new(self.clone())
    }

    /// Adds the counters of another period or thread. `other` has the same type as these counters, since a run has one
    /// mode.
    fn merge_any(&mut self, other: &dyn Any) {
        if let Some(other) = other.downcast_ref() {
            self.merge(other);
        }
    }

    fn complete_any(&mut self) {
        self.complete();
    }
}
