//! What only one mode counts. The thread that counts knows its type; what is reported says it by [`Own::get`].

use std::any::Any;
use std::fmt::Debug;

/// What a mode counts in a stretch of time, or in a whole run.
pub trait ModeCounts: Any + Clone + Debug + Default + Send {
    /// Adds another stretch, or another thread.
    fn merge(&mut self, other: &Self);

    /// Empty ones that count the same.
    fn emptied(&self) -> Self {
        Self::default()
    }

    /// The stretch of all threads is complete.
    fn complete(&mut self) {}
}

/// A mode of the load, by what it counts beside what all modes do.
pub trait Counting {
    /// In each stretch of time.
    type Counts: ModeCounts;
    /// In the whole run.
    type Totals: ModeCounts;
}

/// Nothing.
impl ModeCounts for () {
    fn merge(&mut self, (): &Self) {}
}

/// What the mode of a load has counted, whichever mode it is.
#[derive(Debug, Default)]
pub struct Own(Option<Box<dyn AnyCounts>>);

impl Own {
    /// What this mode has counted.
    pub fn new<T: ModeCounts>(counts: T) -> Self {
        Self(Some(Box::new(counts)))
    }

    /// What this mode has counted, if it is of this mode.
    pub fn get<T: ModeCounts>(&self) -> Option<&T> {
        self.0.as_deref()?.as_any().downcast_ref()
    }

    /// As [`Own::get`], to change it.
    pub fn get_mut<T: ModeCounts>(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()?.as_any_mut().downcast_mut()
    }

    /// Adds another stretch of the same mode.
    pub(crate) fn merge(&mut self, other: &Own) {
        let Some(theirs) = other.0.as_deref() else { return };
        match &mut self.0 {
            Some(mine) => mine.merge_any(theirs.as_any()),
            None => self.0 = Some(theirs.cloned()),
        }
    }

    /// The stretch of all threads is complete.
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

/// [`ModeCounts`] of any mode.
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

    /// A run has one mode.
    fn merge_any(&mut self, other: &dyn Any) {
        if let Some(other) = other.downcast_ref() {
            self.merge(other);
        }
    }

    fn complete_any(&mut self) {
        self.complete();
    }
}
