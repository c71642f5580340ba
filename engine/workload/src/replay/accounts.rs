//! Chooses the templates (texts of statements without their values) that a replay counts separately. Their number is
//! bounded, so that memory is bounded too.

use std::collections::BTreeSet;

use capture::format::About;

/// The greatest number of templates (texts of statements without their values) that are counted separately.
const MOST: usize = 1000;

/// The accounts of a replay. Each account is a set of counters: one for each of the most frequent templates (texts of
/// statements without their values), and one for all other templates together.
#[derive(Debug)]
pub struct Accounts {
    /// For each account (set of counters), the number of the template whose statements it counts.
    templates: Vec<u32>,
    /// For each template of the capture, the number of the account (set of counters) that counts its statements.
    accounts: Vec<u16>,
}

impl Accounts {
    /// Makes the accounts, which are sets of counters, for the templates of a capture. If the capture has more
    /// templates than there are accounts, the most frequent templates get accounts of their own, then the templates
    /// with the lowest numbers.
    pub fn new(about: &About) -> Self {
        let commonest = about.commonest.iter().map(|usage| usage.template);
        Self::of_templates(about.templates, commonest, MOST)
    }

    fn of_templates(all: u32, commonest: impl Iterator<Item = u32>, most: usize) -> Self {
        let mut own = BTreeSet::new();
        for template in commonest.filter(|template| *template < all).chain(0..all) {
            if own.len() == most {
                break;
            }
            own.insert(template);
        }
        let mut accounts = vec![own.len() as u16; all as usize];
        own.iter().zip(0..).for_each(|(template, account)| accounts[*template as usize] = account);
        Self { templates: own.into_iter().collect(), accounts }
    }

    /// Returns the templates (texts of statements without their values) that have an account, a set of counters, of
    /// their own, in the order of the accounts.
    pub fn templates(&self) -> &[u32] {
        &self.templates
    }

    /// Returns the number of the account, the set of counters, that counts the statements of a template.
    pub fn of(&self, template: u32) -> usize {
        self.accounts[template as usize].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(all: u32, commonest: &[u32], most: usize) -> (Vec<u32>, Vec<usize>) {
        let accounts = Accounts::of_templates(all, commonest.iter().copied(), most);
        (accounts.templates().to_vec(), (0..all).map(|template| accounts.of(template)).collect())
    }

    #[test]
    fn each_template_has_an_account_if_they_are_few() {
        assert_eq!(accounts(3, &[2], 3), (vec![0, 1, 2], vec![0, 1, 2]));
        assert_eq!(accounts(0, &[], 3), (vec![], vec![]));
    }

    #[test]
    fn of_many_templates_the_commonest_have_one_each() {
        assert_eq!(accounts(5, &[3, 1], 2), (vec![1, 3], vec![2, 0, 2, 1, 2]));
        assert_eq!(accounts(5, &[3, 9], 2), (vec![0, 3], vec![0, 2, 2, 1, 2]));
    }
}
