-- Estimate too high: nearly nobody has both a small income and the best plan.
select p.income, count(*) as sales, sum(s.amount) as amount
from people p
join sales s on s.person_id = p.person_id
join products t on t.product_id = s.product_id
where p.plan = 'pro'
  and p.income <= 3
  and t.department in ('games', 'music')
group by p.income
order by p.income;
